package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Markdown returns the reference of a plugin: its settings, its requirements, and its
// actions with parameters and results.
func Markdown(m tea.Manifest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s %s\n", inline(m.Name), inline(m.Version))
	if m.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", paragraph(m.Description))
	}
	needs(&b, m)
	if len(m.Settings) > 0 {
		b.WriteString("\n## Settings\n")
		for _, key := range slices.Sorted(maps.Keys(m.Settings)) {
			fmt.Fprintf(&b, "\n### `settings.%s`\n", inline(key))
			table(&b, "", m.Settings[key], true)
		}
	}
	b.WriteString("\n## Actions\n")
	for _, a := range m.Actions {
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", inline(a.Name), paragraph(a.Summary+traits(a)))
		table(&b, "Parameters", a.Params, true)
		table(&b, "Result", a.Result, false)
	}
	return b.String()
}

func traits(a tea.ActionInfo) string {
	var all string
	if a.Streaming {
		all += " Emits tokens or progress."
	}
	if a.Idempotent {
		all += " Idempotent: a call that was interrupted by a crash is repeated."
	}
	if a.Once {
		all += " At most once: a call that may have had its effect is not repeated."
	}
	if a.Reads {
		all += " Only reads: a dry run makes its calls."
	}
	if a.DryRun {
		all += " A dry run checks its calls, and leaves out the effect."
	}
	return all
}

// needs lists the requirements of the plugin's process.
func needs(b *strings.Builder, m tea.Manifest) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, "- "+fmt.Sprintf(format, args...)) }
	if len(m.Env) > 0 {
		add("environment variables: %s", codes(m.Env))
	}
	if len(m.Files) > 0 {
		add("files: %s", codes(m.Files))
	}
	if len(m.Exclusive) > 0 {
		add("settings that only one process can use at a time: %s", codes(m.Exclusive))
	}
	if m.Dynamic != nil {
		add("a file for the actions that depend on the settings: `%s`, which `tea plugin refresh %s --workflow FILE` writes", m.Dynamic.File, m.Name)
	}
	if m.MemoryBytes > 0 {
		add("memory: %d MiB", (m.MemoryBytes+(1<<20)-1)>>20)
	}
	if m.StartTimeoutMS > 0 {
		add("time to start: %s", time.Duration(m.StartTimeoutMS)*time.Millisecond)
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n## Needs\n\n%s\n", strings.Join(lines, "\n"))
	}
}

func codes(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + inline(w) + "`"
	}
	return strings.Join(quoted, ", ")
}

// table writes the fields of a schema. required adds a column.
func table(b *strings.Builder, title string, s *schema.Schema, required bool) {
	all := Fields(s)
	if title != "" && len(all) > 0 {
		fmt.Fprintf(b, "\n%s:\n", title)
	}
	if len(all) == 0 {
		return
	}
	b.WriteString("\n| name | type |")
	if required {
		b.WriteString(" required |")
	}
	b.WriteString(" description |\n| --- | --- |")
	if required {
		b.WriteString(" --- |")
	}
	b.WriteString(" --- |\n")
	for _, f := range all {
		fmt.Fprintf(b, "| `%s` | %s |", cell(inline(f.Path)), cell(f.Type))
		if required {
			fmt.Fprintf(b, " %s |", map[bool]string{true: "yes", false: ""}[f.Required])
		}
		fmt.Fprintf(b, " %s |\n", cell(f.About()))
	}
}

// About returns the description and the rules on one line.
func (f Field) About() string {
	about := f.Rules
	if f.Description != "" {
		about = append([]string{f.Description}, f.Rules...)
	}
	return strings.Join(about, "; ")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// inline returns a text on one line that is valid inside backquotes.
func inline(text string) string { return strings.ReplaceAll(oneLine(text), "`", "'") }

// cell returns a text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(oneLine(text))
}

// paragraph escapes a text that could begin another kind of block.
func paragraph(text string) string {
	return strings.NewReplacer("<", "&lt;", "#", `\#`).Replace(oneLine(text))
}

package migrate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
)

// The ends of the names of what the command writes.
const (
	workflowEnd = ".tea.yaml"
	reportEnd   = ".tea.md"
)

// Command returns the command migrate.
func Command() teacmd.Command {
	return teacmd.ToolCommand("migrate", "Write workflows of tea from those of other systems, each with a report.", func() teacmd.Tool { return new(migrateCmd) })
}

type migrateCmd struct {
	Path string `arg:"" help:"File of a workflow of the_edge_agent or Dagu, or directory of such files."`
	Out  string `placeholder:"DIR" help:"Write to this directory instead of beside the files."`
	teacmd.ToolFlags
}

// Do translates the files.
func (c *migrateCmd) Do(t *teacmd.Toolbox) error {
	files, single, err := list(c.Path)
	if err != nil {
		return teacmd.UsageErrorf("%w", err)
	}
	if c.Out != "" {
		if err := os.MkdirAll(c.Out, 0o755); err != nil {
			return fmt.Errorf("make the directory for the results: %w", err)
		}
	}
	// Check the workflows after all are written: one can be a subgraph of another.
	var written []*translation
	var failed error
	for _, file := range files {
		dir := c.Out
		if dir == "" {
			dir = filepath.Dir(file)
		}
		one, err := translate(t, file, dir, single)
		if err != nil {
			failed = fmt.Errorf("%s: %w", file, err)
			break
		}
		written = append(written, one)
	}
	invalid := 0
	for _, one := range written {
		valid, err := one.check(t)
		if err != nil {
			return errors.Join(failed, err)
		}
		if !valid {
			invalid++
		}
	}
	if failed != nil {
		return failed
	}
	if len(files) == 0 {
		return teacmd.UsageErrorf("%s has no file *.yaml or *.yml", c.Path)
	}
	if invalid > 0 {
		return teacmd.InvalidErrorf("%d of %d files need work before they run; the reports have the reasons", invalid, len(files))
	}
	return nil
}

// list returns the files to translate. single reports that the user named the file.
func list(path string) (files []string, single bool, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, true, err
	}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		name := e.Name()
		if end := filepath.Ext(name); (end == ".yaml" || end == ".yml") && !strings.HasSuffix(name, workflowEnd) && !e.IsDir() {
			files = append(files, filepath.Join(path, name))
		}
	}
	return files, false, err
}

// translation is the result of translating a file. Its report is not written yet.
type translation struct {
	report         *report
	target, beside string
	// valid is what check returns for a file that was not translated, whose report is nil.
	valid bool
}

// translate translates a file and writes the workflow.
func translate(t *teacmd.Toolbox, file, dir string, single bool) (*translation, error) {
	base := filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	one := &translation{target: base + workflowEnd, beside: base + reportEnd}
	for _, path := range []string{one.target, one.beside} {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s exists and is not overwritten; move it, or use --out", path)
		}
	}
	doc, err := read(file)
	if err != nil {
		fmt.Fprintf(t.Out, "%s\n", err)
		return one, nil
	}
	r := &report{source: filepath.Base(file), target: filepath.Base(one.target)}
	switch doc.system() {
	case legacySystem:
		(&legacy{report: r, root: doc.root}).translate()
	case daguSystem:
		(&dagu{report: r, root: doc.root, name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))}).translate()
	default:
		fmt.Fprintf(t.Out, "%s: skipped: it has neither nodes nor steps at the top\n", file)
		one.valid = !single
		return one, nil
	}
	text, err := doc.text()
	if err != nil {
		return nil, err
	}
	r.findings = slices.Clip(r.findings)
	one.report = r
	return one, writeNew(one.target, text)
}

// check validates the workflow and writes its report. valid reports whether it is valid.
func (one *translation) check(t *teacmd.Toolbox) (valid bool, err error) {
	if one.report == nil {
		return one.valid, nil
	}
	diags := t.Host.Validate(one.target, host.LoadOptions{})
	one.report.check(diags)
	if err := writeNew(one.beside, one.report.text()); err != nil {
		_ = os.Remove(one.target) // the two belong together
		return false, err
	}
	fmt.Fprintf(t.Out, "%s: %s\n", one.target, one.report.summary(diags.HasErrors()))
	return !diags.HasErrors(), nil
}

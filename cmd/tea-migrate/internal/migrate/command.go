package migrate

import (
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
	invalid := 0
	for _, file := range files {
		dir := c.Out
		if dir == "" {
			dir = filepath.Dir(file)
		}
		valid, err := one(t, file, dir, single)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if !valid {
			invalid++
		}
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

// one translates a file. valid reports whether the result is a valid workflow.
func one(t *teacmd.Toolbox, file, dir string, single bool) (valid bool, err error) {
	base := filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	target, beside := base+workflowEnd, base+reportEnd
	for _, path := range []string{target, beside} {
		if _, err := os.Lstat(path); err == nil {
			return false, fmt.Errorf("%s exists and is not overwritten; move it, or use --out", path)
		}
	}
	doc, err := read(file)
	if err != nil {
		fmt.Fprintf(t.Out, "%s\n", err)
		return false, nil
	}
	r := &report{source: filepath.Base(file), target: filepath.Base(target)}
	switch doc.system() {
	case legacySystem:
		(&legacy{report: r, root: doc.root}).translate()
	case daguSystem:
		(&dagu{report: r, root: doc.root, name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))}).translate()
	default:
		fmt.Fprintf(t.Out, "%s: skipped: it has neither nodes nor steps at the top\n", file)
		return !single, nil
	}
	text, err := doc.text()
	if err != nil {
		return false, err
	}
	r.findings = slices.Clip(r.findings)
	wf, err := writeNew(target, text)
	if err != nil {
		return false, err
	}
	diags := t.Host.Validate(target, host.LoadOptions{})
	r.check(diags)
	if _, err := writeNew(beside, r.text()); err != nil {
		_ = os.Remove(wf) // the two belong together
		return false, err
	}
	fmt.Fprintf(t.Out, "%s: %s\n", target, r.summary(diags.HasErrors()))
	return !diags.HasErrors(), nil
}

package teacmd

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// archiveFlags name an archive.
type archiveFlags struct {
	File string `arg:"" help:"The archive."`
	JSON bool   `name:"json" help:"Print JSON."`
	memoryFlags
}

type memoryExportCmd struct{ archiveFlags }

// Run writes an archive.
func (c *memoryExportCmd) Run(a *app) error { return a.writeArchive(c.archiveFlags, "memory.export") }

type memoryBackupCmd struct{ archiveFlags }

// Run writes an archive and checks it.
func (c *memoryBackupCmd) Run(a *app) error { return a.writeArchive(c.archiveFlags, "memory.backup") }

type memoryImportCmd struct {
	Keep bool `help:"Keep records that exist. Default: replace them."`
	archiveFlags
}

// Run adds an archive to the memory.
func (c *memoryImportCmd) Run(a *app) error {
	existing := "replace"
	if c.Keep {
		existing = "keep"
	}
	return a.readArchive(c.archiveFlags, "memory.import", map[string]any{"existing": existing})
}

type memoryRestoreCmd struct{ archiveFlags }

// Run reads an archive into an empty memory.
func (c *memoryRestoreCmd) Run(a *app) error {
	return a.readArchive(c.archiveFlags, "memory.restore", map[string]any{})
}

// path sets archives and returns the name of the archive in that directory.
func (f *archiveFlags) path() (string, error) {
	file, err := filepath.Abs(f.File)
	f.archives = filepath.Dir(file)
	return filepath.Base(file), err
}

func (a *app) writeArchive(f archiveFlags, action string) error {
	path, err := f.path()
	if err != nil {
		return err
	}
	write := map[string]any{"name": "memory", "uses": action, "with": map[string]any{"path": path}, "output": "result"}
	nodes := []any{write}
	if f.URL == "" { // a mistyped path would create an empty archive
		write["if"] = "state.found.state ~= 'new'"
		nodes = []any{map[string]any{"name": "inspect", "uses": "memory.inspect", "output": "found"}, write}
	}
	state, err := a.runMemory(f.memoryFlags, nodes...)
	if err != nil {
		return err
	}
	if found, _ := state["found"].(map[string]any); found["state"] == "new" {
		return fmt.Errorf("there is no memory in %v; name its folder with --path", found["path"])
	}
	r, _ := state["result"].(map[string]any)
	if f.JSON {
		err = writeState(a.stdout, r)
	} else {
		fmt.Fprintf(a.out, "wrote %v bytes to %s: %s\n", r["bytes"], f.File, contentsOf(r))
	}
	if damaged, _ := r["damaged"].(int64); damaged > 0 {
		err = errors.Join(err, fmt.Errorf("the archive is not complete: %d damaged records are not in it", damaged))
	}
	return err
}

func (a *app) readArchive(f archiveFlags, action string, params map[string]any) error {
	path, err := f.path()
	if err != nil {
		return err
	}
	params["path"] = path
	r, err := a.callMemory(f.memoryFlags, action, params)
	if exit := new(exitError); errors.As(err, &exit) && exit.code == exitStopped {
		return &exitError{exit.code, fmt.Errorf("%w; if `tea memory inspect` lists tea_import, `tea memory import` of the same archive continues", exit.err)}
	}
	if err != nil {
		return err
	}
	refused, _ := r["refused"].([]any)
	if f.JSON {
		err = writeState(a.stdout, r)
	} else {
		fmt.Fprintf(a.out, "imported %s: %s\n", f.File, contentsOf(r))
		for _, reason := range refused {
			fmt.Fprintf(a.out, "not stored: %v\n", reason)
		}
	}
	if len(refused) > 0 {
		err = errors.Join(err, errors.New("the import is not complete: the memory cannot store some records"))
	}
	return err
}

// contentsOf lists the contents of an archive.
func contentsOf(r map[string]any) string {
	var parts []string
	for key, unit := range map[string]string{"records": "", "rows": " rows"} {
		counts, _ := r[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("%s %v%s", name, counts[name], unit))
		}
	}
	if len(parts) == 0 {
		return "nothing is stored"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

package teacmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

type memoryCmd struct {
	Inspect memoryInspectCmd `cmd:"" help:"Show the path and the contents of the memory, and whether it can be opened."`
	Export  memoryExportCmd  `cmd:"" help:"Write everything in the memory to an archive."`
	Import  memoryImportCmd  `cmd:"" help:"Add an archive to the memory."`
	Backup  memoryBackupCmd  `cmd:"" help:"Write everything in the memory to an archive and check it."`
	Restore memoryRestoreCmd `cmd:"" help:"Read an archive into an empty memory."`
	Reset   memoryResetCmd   `cmd:"" help:"Remove everything in the memory."`
}

// memoryFlags select the memory.
type memoryFlags struct {
	Path     string `placeholder:"DIR" help:"The folder, as settings.memory.path of a workflow. Default: tea/memory in the user's data directory."`
	Engine   string `placeholder:"ENGINE" help:"As settings.memory.engine. Default: the embedded engine of the memory."`
	URL      string `name:"url" env:"TEA_MEMORY_URL" placeholder:"URL" help:"Address of a memory that is not embedded, as settings.memory.url."`
	Token    string `env:"TEA_MEMORY_TOKEN" placeholder:"TOKEN" help:"Its password or token."`
	Options  string `env:"TEA_MEMORY_OPTIONS" placeholder:"JSON|@FILE|-" help:"Its other settings, as settings.memory.options. A file or the variable keeps keys out of the list of processes."`
	archives string // directory of the archives
	pluginFlags
	reportFlags
}

type memoryInspectCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	memoryFlags
}

// Run describes the memory. It fails if the memory cannot be opened.
func (c *memoryInspectCmd) Run(a *app) error {
	r, err := a.callMemory(c.memoryFlags, "memory.inspect", map[string]any{})
	if err != nil {
		return err
	}
	problem, _ := r["problem"].(string)
	switch {
	case c.JSON:
		err = writeState(a.stdout, r)
	default:
		err = a.showMemory(r)
	}
	if err == nil && problem != "" {
		return errors.New(problem)
	}
	return err
}

func (a *app) showMemory(r map[string]any) error {
	rows := [][]string{{"path", fmt.Sprint(r["path"])}, {"engine", fmt.Sprint(r["engine"])}, {"state", fmt.Sprint(r["state"])}}
	for _, group := range []struct{ key, unit string }{{"entries", "entries"}, {"bytes", "bytes"}} {
		counts, _ := r[group.key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			rows = append(rows, []string{name, fmt.Sprintf("%v %s", counts[name], group.unit)})
		}
	}
	return a.table(nil, append(rows, []string{"total", fmt.Sprintf("%v bytes", r["total_bytes"])}))
}

type memoryResetCmd struct {
	Yes bool `help:"Confirm: removed data cannot be restored."`
	memoryFlags
}

func (c *memoryResetCmd) Run(a *app) error {
	if !c.Yes {
		r, err := a.callMemory(c.memoryFlags, "memory.inspect", map[string]any{})
		if err != nil {
			return err
		}
		return usageErrorf("this would remove %v bytes in %v; add --yes to confirm", r["total_bytes"], r["path"])
	}
	r, err := a.callMemory(c.memoryFlags, "memory.reset", map[string]any{"confirm": true})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "removed %v bytes in %v\n", r["bytes"], r["path"])
	return nil
}

// callMemory calls an action of the memory plugin outside of a workflow.
func (a *app) callMemory(f memoryFlags, action string, params map[string]any) (map[string]any, error) {
	state, err := a.runMemory(f, map[string]any{"name": "memory", "uses": action, "with": params, "output": "result"})
	result, _ := state["result"].(map[string]any)
	return result, err
}

// runMemory runs nodes that call the memory plugin, and returns the state.
func (a *app) runMemory(f memoryFlags, nodes ...any) (map[string]any, error) {
	a.setReport(f.reportFlags)
	settings := map[string]any{}
	if f.Path != "" {
		path, err := filepath.Abs(f.Path)
		if err != nil {
			return nil, err
		}
		settings["path"] = path
	}
	for key, value := range map[string]string{"engine": f.Engine, "url": f.URL, "token": f.Token} {
		if value != "" {
			settings[key] = value
		}
	}
	if f.Options != "" {
		options, err := a.readObject("--options", f.Options)
		if err != nil {
			return nil, err
		}
		settings["options"] = options
	}
	if f.archives != "" {
		settings["archives"] = f.archives
	}
	workflow, err := json.Marshal(map[string]any{
		"settings": map[string]any{"memory": settings},
		"nodes":    nodes,
	})
	if err != nil {
		return nil, err
	}
	h, err := a.openHost(f.pluginFlags, f.reportFlags, startPlugins, host.Options{})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	wf, err := h.Parse("tea memory", workflow, host.LoadOptions{})
	var diags host.Diagnostics
	if errors.As(err, &diags) && host.LacksPlugins(diags) {
		return nil, pluginError(errors.New("the plugin memory is not installed; `tea plugin list` shows those that are found"))
	}
	if err != nil {
		return nil, err
	}
	defer wf.Close()
	ctx, stop := stoppable()
	defer stop(nil)
	res, err := wf.Run(ctx, host.RunOptions{})
	if err != nil {
		return nil, err
	}
	var failed *flow.NodeError
	if errors.As(res.Err, &failed) {
		return nil, &exitError{codeOf(res), failed.Err}
	}
	if res.Err != nil {
		return nil, &exitError{codeOf(res), res.Err}
	}
	return res.State, nil
}

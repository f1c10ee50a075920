package host

import (
	"path/filepath"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// loadGraph compiles a file for workflow.run. The path, which can come from data or a
// model, must be below dir, the directory of the calling workflow. The file itself is
// trusted: it can refer to files elsewhere.
func (wf *Workflow) loadGraph(dir, path string) (*graph.Graph, error) {
	name, err := confine.Clean(path)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, filepath.FromSlash(name))
	wf.mu.Lock()
	defer wf.mu.Unlock()
	if g := wf.graphs[file]; g != nil {
		return g, nil
	}
	embedded := wf.host.o.Embedded
	data, err := embedded.Read(file, func(string) ([]byte, error) { return readBelow(dir, path) })
	if err != nil {
		return nil, err
	}
	read := func(other string) ([]byte, error) {
		if other == file {
			return data, nil
		}
		return embedded.Read(other, func(string) ([]byte, error) { return confine.ReadRegular(other, source.MaxBytes) })
	}
	s, diags := spec.Load(file, spec.Options{LookupEnv: wf.options.LookupEnv, ReadFile: read})
	if s != nil {
		wf.declared.Check(s, &diags)
		s.DataDir = wf.spec.DataDir
		modules := wf.imports(s, &diags)
		g, more := graph.Compile(s, graph.Env{Lua: wf.lua, Actions: wf.catalog, Modules: modules.byNamespace, Broken: modules.broken})
		diags = append(diags, more...)
		if g != nil && !diags.HasErrors() {
			wf.graphs[file] = g
			return g, nil
		}
	}
	return nil, tea.Errorf(tea.ValidationError, "load %s: %w", path, diags)
}

// readBelow reads a workflow file below dir, without following a link out of it.
func readBelow(dir, path string) ([]byte, error) {
	root, err := confine.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it was read only
	info, err := root.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > source.MaxBytes {
		return nil, tea.Errorf(tea.ValidationError, "%s has more than %d bytes", path, source.MaxBytes)
	}
	return root.ReadFile(path, source.MaxBytes)
}

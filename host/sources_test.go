package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

func TestRunContinuesWithTheStoredVersion(t *testing.T) {
	t.Parallel()
	dir, runs := t.TempDir(), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("flow.yaml", "imports: [{path: m.lua, namespace: m}]\nnodes: [{name: ask, interrupt: after}, {name: say, uses: m.say}]\n")
	const latin1 = "-- gr\xf6\xdfe\n"
	write("m.lua", latin1+`return {register_actions = function(r) r.say = function() return {said = "old"} end end}`)
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	load := func() *host.Workflow {
		wf, err := h.Load(file, host.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = wf.Close() })
		return wf
	}
	wf := load()
	source, err := wf.Source()
	if err == nil {
		err = source.Keep(runs)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := host.RunOptions{CheckpointDir: runs}
	res, err := wf.Run(t.Context(), o)
	if err != nil || res.Status != flow.Waiting {
		t.Fatalf("run: %v, %v", res, err)
	}
	write("m.lua", `return {register_actions = function(r) r.say = function() return {said = "new"} end end}`)
	if _, err := wf.Source(); err == nil {
		t.Error("the source of a workflow that has changed was read")
	}
	info, err := host.FindRun(runs, res.RunID)
	if err != nil {
		t.Fatal(err)
	}
	resumed := func(o2 host.LoadRunOptions) (any, error) {
		wf, err := h.LoadRun(info, o2)
		if err != nil {
			return nil, err
		}
		defer wf.Close()
		if wf.Digest() != info.Digest {
			return nil, host.ErrWorkflowChanged
		}
		res, err := wf.Fork(t.Context(), res.RunID, 1, o)
		if err != nil {
			return nil, err
		}
		res, err = wf.Resume(t.Context(), res.RunID, o)
		return res.State["said"], err
	}
	if said, err := resumed(host.LoadRunOptions{}); said != "old" || err != nil {
		t.Errorf("after a change: %v, %v", said, err)
	}
	write("flow.yaml", "nodes: [")
	if _, err := h.LoadRun(info, host.LoadRunOptions{Changed: true}); err == nil {
		t.Error("another version was loaded instead of the changed one, which is not valid")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if said, err := resumed(host.LoadRunOptions{}); said != "old" || err != nil {
		t.Errorf("without the file: %v, %v", said, err)
	}
	list, err := checkpoints.Open(runs)
	if err != nil {
		t.Fatal(err)
	}
	kept := func() int {
		files, err := os.ReadDir(filepath.Join(runs, "sources"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	if err := host.RemoveSources(list, nil); err != nil || kept() != 1 {
		t.Errorf("sources of runs: %d, %v", kept(), err)
	}
	entries, err := list.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := list.Remove(e.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := host.RemoveSources(list, []*host.Source{source}); err != nil || kept() != 1 {
		t.Errorf("sources of workflows: %d, %v", kept(), err)
	}
	if err := host.RemoveSources(list, nil); err != nil || kept() != 0 {
		t.Errorf("sources that nothing needs: %d, %v", kept(), err)
	}
	sources := filepath.Join(runs, "sources")
	if err := os.WriteFile(filepath.Join(sources, ".x.tea-tmp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := host.RemoveSources(list, nil); err != nil || kept() != 1 {
		t.Errorf("a source that is being written: %d, %v", kept(), err)
	}
	if err := errors.Join(os.RemoveAll(sources), os.WriteFile(sources, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := host.RemoveSources(list, nil); err == nil {
		t.Error("sources that cannot be read are not an error")
	}
}

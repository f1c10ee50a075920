package host_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// instances is a bundle that counts its open instances.
type instances struct{ opened, open int }

func (i *instances) Close() error {
	i.open--
	return nil
}

func TestReleasedWorkflowRunsAgain(t *testing.T) {
	t.Parallel()
	count := new(instances)
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{{
		Name: "count", Version: "1.0.0",
		Open: func(context.Context, tea.Settings) (any, error) {
			count.opened++
			count.open++
			return count, nil
		},
		Actions: []tea.Action{tea.NewAction("count.open", "Counts.", func(_ context.Context, req *tea.Request, _ struct{}) (map[string]any, error) {
			return map[string]any{"open": req.Instance.(*instances).open}, nil
		})},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sub.yaml"), []byte("nodes: [{name: a}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text string
		current    bool
		opened     int
	}{
		{"one file", "nodes: [{name: a, uses: count.open}]", true, 1},
		{"settings with a secret", "settings: {http: {allow_hosts: ['{{ secrets.host }}']}}\nnodes: [{name: a, uses: count.open}]", true, 1},
		{"a workflow that it runs", "nodes: [{name: a, uses: workflow.run, with: {path: sub.yaml}}]", false, 0},
		{"a subgraph", "nodes: [{name: a, subgraph: sub.yaml}]", false, 0},
	} {
		file := filepath.Join(dir, "flow.yaml")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		wf, err := h.Load(file, host.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for run := 1; run <= 2; run++ {
			*count = instances{}
			res, err := wf.Run(t.Context(), host.RunOptions{Secrets: map[string]any{"host": "example.com"}})
			if err != nil || res.Err != nil {
				t.Fatal(test.name, err, res)
			}
			current, err := wf.Release()
			if err != nil || current != test.current || count.opened != test.opened || count.open != 0 {
				t.Errorf("%s, run %d: released: current %v, %v; opened %d, open %d", test.name, run, current, err, count.opened, count.open)
			}
		}
		wf.Close()
	}
}

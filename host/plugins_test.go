package host_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// plugins are bundles in this process that pass for plugins.
type plugins []*tea.Bundle

func (p plugins) Manifests() []tea.Manifest {
	var all []tea.Manifest
	for _, b := range p {
		all = append(all, b.Manifest())
	}
	return all
}

func (p plugins) Open(ctx context.Context, bundle string, settings tea.Settings) (host.Invoker, error) {
	for _, b := range p {
		if b.Name == bundle {
			return b.NewInstance(ctx, settings)
		}
	}
	return nil, tea.Errorf(tea.NotFound, "there is no plugin %s", bundle)
}

func (plugins) Close() error { return nil }

func TestPluginWithAnActionOfTheHostStopsNoWorkflow(t *testing.T) {
	t.Parallel()
	answer := func(name string) tea.Action {
		return host.Func(name, "Answers.", func(context.Context, map[string]any) (any, error) { return map[string]any{"by": name}, nil })
	}
	greedy := &tea.Bundle{Name: "greedy", Version: "1.0.0", Actions: []tea.Action{answer("json.stringify"), answer("greedy.own")}}
	twin := &tea.Bundle{Name: "twin", Version: "1.0.0", Actions: []tea.Action{answer("greedy.own"), answer("twin.own")}}
	var log bytes.Buffer
	h, err := host.New(host.Options{Plugins: plugins{greedy, twin}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	for range 2 {
		wf, err := h.Parse("test.yaml", []byte(`
nodes:
  - {name: a, uses: json.stringify, with: {data: [1]}, output: {text: "{{ result.text }}"}}
  - {name: b, uses: greedy.own, output: {b: "{{ result.by }}"}}
  - {name: c, uses: twin.own, output: {c: "{{ result.by }}"}}
`), host.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { wf.Close() })
		res, err := wf.Run(t.Context(), host.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, res, map[string]any{"text": "[1]", "b": "greedy.own", "c": "twin.own"})
	}
	for _, once := range []string{
		"the action json.stringify of tea-plugin-greedy is not used: there is one already, in the host bundle json",
		"the action greedy.own of tea-plugin-twin is not used: there is one already, in the plugin bundle greedy",
	} {
		if n := strings.Count(log.String(), once); n != 1 {
			t.Errorf("%d times %q in:\n%s", n, once, &log)
		}
	}
}

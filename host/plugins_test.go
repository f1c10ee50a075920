package host_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
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
	return nil, tea.Errorf(tea.NotFound, "plugin %s not found", bundle)
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

// asked are plugins that are known once they are asked. The zero value has a
// plugin "sensors" that is never asked.
type asked struct {
	plugins // known
	unread  plugins
	asks    []string
	mu      sync.Mutex
}

func (a *asked) Manifests() []tea.Manifest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plugins.Manifests()
}

func (a *asked) Open(ctx context.Context, bundle string, settings tea.Settings) (host.Invoker, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plugins.Open(ctx, bundle, settings)
}

func (a *asked) Unread() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unread == nil {
		return []string{"sensors"}
	}
	var names []string
	for _, b := range a.unread {
		names = append(names, b.Name)
	}
	return names
}

func (a *asked) Learn(_ context.Context, names ...string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := plugins{}
	for _, b := range a.unread {
		if !slices.Contains(names, b.Name) {
			left = append(left, b)
			continue
		}
		a.asks = append(a.asks, b.Name)
		a.plugins = append(a.plugins, b)
	}
	if a.unread != nil {
		a.unread = left
	}
	return nil
}

// A plugin is asked for its manifest when its action is needed, be it in a
// node, in Lua, or by an import; its settings are known then.
func TestPluginIsAskedForItsManifestWhenNeeded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, flow string
		asks       []string
	}{
		{"not needed", `nodes: [{name: a, uses: json.parse, with: {text: "1"}}]`, nil},
		{"a node", `{settings: {sensors: {port: 1}}, nodes: [{name: a, uses: sensors.read}]}`, []string{"sensors"}},
		{"another name", `nodes: [{name: a, uses: gauge.read}]`, []string{"sensors", "pumps"}},
		{"Lua", `nodes: [{name: a, run: 'return tea.action("sensors.read")'}]`, []string{"sensors"}},
		{
			"Lua, concurrently", `
nodes:
  - {name: a, type: dynamic_parallel, items: [1, 2, 3, 4, 5, 6, 7, 8], fail_fast: true, steps: [{run: 'return tea.action("gauge.read")'}]}`,
			[]string{"sensors", "pumps"},
		},
		{"an import", `{imports: [{plugin: pumps}], nodes: [{name: a}]}`, []string{"pumps"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			read := func(name string) tea.Action {
				return host.Func(name, "Reads.", func(context.Context, map[string]any) (any, error) { return map[string]any{"value": 1}, nil })
			}
			p := &asked{unread: plugins{
				{Name: "sensors", Version: "1.0.0", Settings: map[string]*schema.Schema{"sensors": nil}, Actions: []tea.Action{read("sensors.read"), read("gauge.read")}},
				{Name: "pumps", Version: "1.0.0", Actions: []tea.Action{read("pumps.read")}},
			}}
			h, err := host.New(host.Options{Plugins: p})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { h.Close() })
			wf, err := h.Parse("test.yaml", []byte(c.flow), host.LoadOptions{Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { wf.Close() })
			if res, err := wf.Run(t.Context(), host.RunOptions{}); err != nil || res.Status != flow.Done {
				t.Fatal(res, err)
			}
			if diff := cmp.Diff(c.asks, p.asks); diff != "" {
				t.Error(diff)
			}
		})
	}
}

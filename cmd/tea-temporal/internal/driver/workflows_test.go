package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// What a run stores in the server's history is what its workflow reads, not what
// its text happens to contain.
func TestOnlyVariablesAndPluginsInUseTravelWithARun(t *testing.T) {
	t.Parallel()
	var all []*tea.Bundle
	for _, name := range []string{"graph", "store", "notes", "text", "tools"} {
		all = append(all, &tea.Bundle{Name: name, Version: "1.0.0", Actions: []tea.Action{host.Func(name+".act", "Acts.", nil)}})
	}
	h, err := host.New(host.Options{Bundles: all})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	file := write(t, "flow.yaml", `
# PASS and BYPASS appear in this comment, as does the word graph.
imports: [{plugin: notes, namespace: n}]
settings: {x-a: "${NAME_IN_SETTINGS:-PRESET}", x-b: "$${NOT_READ}"}
nodes:
  - {name: draw, uses: store.act, with: {}, if: "{{ env.NAME_IN_CONDITION == 'x' }}"}
  - {name: text, run: "return {graph = 'the text.', at = 'HOME', x = tea.action('tools.act', {})}"}
  - {name: parse, uses: json.stringify, with: {data: "{{ env.NAME_IN_TEMPLATE }}"}}
  - {name: below, subgraph: sub.yaml}
`)
	sub := "nodes: [{name: in, uses: json.stringify, with: {data: \"{{ env['NAME_IN_SUBGRAPH'] }}\"}}]\n"
	env := map[string]any{}
	used := []string{"NAME_IN_CONDITION", "NAME_IN_CONFIG", "NAME_IN_SETTINGS", "NAME_IN_SUBGRAPH", "NAME_IN_TEMPLATE"}
	for _, name := range append(used, "PASS", "BYPASS", "HOME", "NOT_READ", "PRESET", "NAME", "A", "a", "E", "IN", "nodes", "env", "data") {
		env[name] = "value of " + name
	}
	for i := range 200 {
		env[fmt.Sprintf("N%d", i)] = "secret"
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "sub.yaml"), []byte(sub), 0o600); err != nil {
		t.Fatal(err)
	}
	o := host.LoadOptions{Config: `{"settings": {"x-c": "${NAME_IN_CONFIG}"}}`, LookupEnv: func(name string) (string, bool) {
		text, ok := env[name].(string)
		return text, ok
	}}
	wf, err := h.Load(file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wf.Close() })
	d, err := newDefinition(wf, o, env)
	if err != nil {
		t.Fatal(err)
	}
	var names, plugins []string
	for name, text := range d.Env {
		names = append(names, name)
		if text != "value of "+name {
			t.Errorf("%s is %q", name, text)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(used, names); diff != "" {
		t.Errorf("variables: -want +got:\n%s", diff)
	}
	for _, m := range d.Plugins {
		plugins = append(plugins, m.Name)
	}
	if got := strings.Join(plugins, " "); got != "store notes tools" {
		t.Errorf("the manifests of %s travel", got)
	}
}

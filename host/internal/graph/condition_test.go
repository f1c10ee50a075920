package graph_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/the-edge-agent/tea/host/internal/script"
)

// roots is a scope in which unknown names are keys of the state.
type roots map[string]any

func (r roots) Lookup(name string) (any, bool) {
	if v, ok := r[name]; ok {
		return v, true
	}
	v, ok := r["state"].(map[string]any)[name]
	return v, ok
}

// TestConditionsMeanTheSameInBothLanguages evaluates expressions in which
// only the language differs.
func TestConditionsMeanTheSameInBothLanguages(t *testing.T) {
	t.Parallel()
	state := map[string]any{"count": int64(4), "ready": true, "none": nil, "list": []any{int64(1)}}
	scope := roots{
		"state": state, "nodes": map[string]any{"a": map[string]any{"ok": true}},
		"result": map[string]any{"score": 0.5}, "run": map[string]any{"id": "r1"},
	}
	for text, want := range map[string]any{
		"count > 3":                   true,
		"state.count > 3":             true,
		"{{ count > 3 }}":             true,
		" {{ count > 5 }} ":           false,
		"ready == True":               true,
		"ready == False":              false,
		"ready == true":               true,
		"none == None":                true,
		"none == nil":                 true,
		"count != 4":                  false,
		"count ~= 4":                  false,
		"!ready":                      false,
		"not ready":                   false,
		"list | length":               int64(1),
		"#list":                       int64(1),
		"result.score > 0.4":          true,
		"{{ result.score > 0.4 }}":    true,
		"nodes.a.ok and run.id":       "r1",
		"{{ nodes.a.ok and run.id }}": "r1",
		"missing":                     nil,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			quoted := "nodes: [{name: a, if: '" + text + "'}]"
			g, diags := compile(t, &txtar.Archive{Files: []txtar.File{{Name: "flow.yaml", Data: []byte(quoted)}}})
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			globals := script.Values{"variables": map[string]any{}}
			got, err := g.Node("a").If.Eval(t.Context(), scope, script.Env{State: state, Globals: globals})
			if err != nil || !cmp.Equal(want, got) {
				t.Errorf("%v (%T), %v", got, got, err)
			}
		})
	}
}

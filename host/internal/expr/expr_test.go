package expr_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/expr"
)

// roots is a scope made of a map.
type roots map[string]any

func (r roots) Lookup(name string) (any, bool) {
	v, ok := r[name]
	return v, ok
}

type (
	object = map[string]any
	list   = []any
)

func mustCompile(t testing.TB, text string) *expr.Template {
	t.Helper()
	tmpl, err := expr.Compile(text)
	if err != nil {
		t.Fatalf("compile %q: %v", text, err)
	}
	return tmpl
}

func mustEval(t testing.TB, text string, s expr.Scope) any {
	t.Helper()
	v, err := mustCompile(t, text).Eval(context.Background(), s)
	if err != nil {
		t.Fatalf("evaluate %q: %v", text, err)
	}
	return v
}

func diff(t testing.TB, text string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%q (-want +got):\n%s", text, d)
	}
}

package expr_test

import (
	"context"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/expr"
)

// strictScope is a scope in which the members of secrets are required.
type strictScope map[string]any

func (s strictScope) Lookup(name string) (any, bool) { v, ok := s[name]; return v, ok }

func (strictScope) Required(root, _ string, _ int) bool { return root == "secrets" }

func TestRequiredMember(t *testing.T) {
	t.Parallel()
	scope := strictScope{
		"secrets": map[string]any{"tok": "abc", "none": nil, "db": map[string]any{"user": "me"}},
		"state":   map[string]any{"k": "tokn", "ok": "tok"},
	}
	const missing = `secrets has no member "tokn" (did you mean "tok"?)`
	for text, want := range map[string]string{
		"{{ secrets[state.k] }}":                                         missing,
		"[{{ secrets[state.k] }}]":                                       missing,
		"{{ secrets.get('tokn') }}":                                      missing,
		"{{ secrets | attr('tokn') }}":                                   missing,
		"{{ secrets.tokn }}":                                             missing,
		"[{{ secrets.tokn }}]":                                           missing,
		"{{ secrets[state.k] | upper }}":                                 missing,
		"{{ secrets[state.k] | upper | default('x') }}":                  missing,
		"{% for k in ['tok', 'tokn'] %}{{ secrets[k] }}{% endfor %}":     missing,
		"{{ secrets[state.k] is none }}":                                 missing,
		"{{ 'x' if secrets[state.k] else 'y' }}":                         missing,
		"{% set s = secrets %}{{ s[state.k] }}":                          missing,
		"{% set s = secrets %}{{ s.tokn }}":                              missing,
		"{% with s = secrets %}{{ s.get('tokn') }}{% endwith %}":         missing,
		"{% macro m(s) %}{{ s[state.k] }}{% endmacro %}{{ m(secrets) }}": missing,
		"{% for s in [secrets] %}{{ s[state.k] }}{% endfor %}":           missing,
		"{{ (secrets if state.k else state)[state.k] }}":                 missing,
		"{{ {'a': secrets}.a[state.k] }}":                                missing,
		"{% set d = secrets.db %}{{ d['us' ~ 'r'] }}":                    `a value in secrets has no member "usr" (did you mean "user"?)`,
		"{% set s = secrets %}{% set d = s.db %}{{ d['us' ~ 'r'] }}":     `a value in secrets has no member "usr" (did you mean "user"?)`,
		"{{ secrets.db['usr'] }}":                                        `a value in secrets has no member "usr" (did you mean "user"?)`,
		"{{ secrets['d' ~ 'b'].usr }}":                                   `a value in secrets has no member "usr" (did you mean "user"?)`,
		"{{ secrets['tok'].foo }}":                                       `a value in secrets has no member "foo"`,
	} {
		tmpl, err := expr.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := tmpl.Eval(context.Background(), scope); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %#v, %v; want %s", text, v, err, want)
		}
	}
	for text, want := range map[string]any{
		"{{ secrets[state.ok] }}":                                   "abc",
		"{{ secrets['no' ~ 'ne'] }}":                                nil,
		"{{ secrets[state.k] | default('x') }}":                     "x",
		"{{ secrets.get('tokn', 'x') }}":                            "x",
		"{{ secrets.get('tokn') | d('x') }}":                        "x",
		"{{ secrets | attr('tokn') | default('x') }}":               "x",
		"{{ secrets[state.k] is defined }}":                         false,
		"{{ secrets.db['usr'] is undefined }}":                      true,
		"{% set s = secrets %}{{ s[state.ok] }}":                    "abc",
		"{% set s = secrets %}{{ s[state.k] | default('x') }}":      "x",
		"{% set s = state %}{% set t = secrets %}{{ s.nope }}":      "",
		"{{ 'tokn' in secrets }}":                                   false,
		"{{ state[secrets.tok] }}":                                  nil,
		"{{ state.nope.get('x') if state.nope }}":                   nil,
		"{% set secrets = {'a': 1} %}{{ secrets['tokn'] is none }}": "true",
	} {
		tmpl, err := expr.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := tmpl.Eval(context.Background(), scope); err != nil || v != want {
			t.Errorf("%s: got %#v, %v; want %#v", text, v, err, want)
		}
	}
}

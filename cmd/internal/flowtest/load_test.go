package flowtest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

const whole = `
workflow: flow.yaml
tests:
  - name: one
    overlays: [dev.yaml]
    input: &input {n: 1, x: 1.5, list: [true, null]}
    actions: {a.b: {v: 1}, c.d: [1, 2]}
    answers: {ask: yes}
    expect: {status: done, state: {n: 2}}
  - workflow: /abs/other.yaml
    input: *input
`

func TestParse(t *testing.T) {
	t.Parallel()
	s, err := Parse("dir/t.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	input := map[string]any{"n": int64(1), "x": 1.5, "list": []any{true, nil}}
	want := []Test{
		{
			Name: "one", Pos: diag.Pos{File: "dir/t.yaml", Line: 4, Column: 5}, Workflow: "dir/flow.yaml", Overlays: []string{"dir/dev.yaml"},
			Input: input, Actions: map[string][]any{"a.b": {map[string]any{"v": int64(1)}}, "c.d": {int64(1), int64(2)}},
			Answers: map[string]any{"ask": "yes"},
			Expect: []Expectation{
				{diag.Pos{File: "dir/t.yaml", Line: 9, Column: 14}, "status", "done"},
				{diag.Pos{File: "dir/t.yaml", Line: 9, Column: 28}, "state", map[string]any{"n": int64(2)}},
			},
		},
		{Name: "test 2", Pos: diag.Pos{File: "dir/t.yaml", Line: 10, Column: 5}, Workflow: "/abs/other.yaml", Input: input},
	}
	if diff := cmp.Diff(want, s.Tests); diff != "" {
		t.Error(diff)
	}
}

func TestMistakesInTests(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"empty", "", "t.yaml: no list of tests"},
		{"no mapping", "[1]", "t.yaml:1:1: expected a mapping with tests, workflow"},
		{"no tests", "workflow: x", "t.yaml:1:1: no list of tests"},
		{"unknown key", "tests: [{nmae: x}]", `t.yaml:1:10: unknown key "nmae"; did you mean "name"?`},
		{"unknown expectation", "tests: [{workflow: x, expect: {stat: done}}]", `did you mean "state"?`},
		{"no workflow", "tests: [{name: x}]", "t.yaml:1:9: x does not name a workflow"},
		{"input no object", "tests: [{workflow: x, input: 3}]", "t.yaml:1:30: expected an object"},
		{"no results", "tests: [{workflow: x, actions: {a.b: []}}]", "the list of results of a.b is empty"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("t.yaml", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want %q", err, test.want)
			}
		})
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	got := map[string]any{"a": int64(1), "o": map[string]any{"x": 1.0, "y": "z"}, "l": []any{map[string]any{"k": true, "m": nil}}}
	tests := []struct {
		name  string
		want  any
		exact bool
		diffs []string
	}{
		{"subset", map[string]any{"o": map[string]any{"x": int64(1)}, "l": []any{map[string]any{"k": true}}}, false, nil},
		{
			"exact",
			map[string]any{"a": int64(1), "o": map[string]any{"x": int64(1)}, "l": []any{map[string]any{"k": true, "m": nil}}},
			true,
			[]string{`state.o.y: not expected, got "z"`},
		},
		{
			"several",
			map[string]any{"a": "1", "b": nil, "l": []any{}},
			false,
			[]string{`state.a: want "1", got 1`, `state.b: want null, got nothing`, `state.l: want [], got [{"k":true,"m":null}]`},
		},
		{"in a list", map[string]any{"l": []any{map[string]any{"k": false}}}, false, []string{`state.l[0].k: want false, got true`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.diffs, difference("state", test.want, got, test.exact)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("tests: [{workflow: x, actions: {a: {error: {type: t}}}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("t.yaml", data)
		if err == nil && len(s.Tests) == 0 {
			t.Error("neither tests nor an error")
		}
	})
}

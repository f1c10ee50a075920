package expr_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// compileValue compiles a tree in which all strings with tags are templates.
func compileValue(v any, at func(path string, line, column int) diag.Pos) (*expr.Value, diag.List) {
	return expr.CompileTemplates(v, func(_, text string) bool { return expr.IsTemplate(text) }, at)
}

func TestValue(t *testing.T) {
	t.Parallel()
	v, faults := compileValue(parameters(), nil)
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	got, err := v.Eval(context.Background(), jinjaState())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "value", any(object{
		"model": "small", "temperature": 0.2, "max_tokens": int64(256), "stream": false, "stop": list{"\n"},
		"prompt": "Explain Ada in 3 lines.", "name": "Ada", "first": int64(3), "words": "pear, Apple, fig, apple",
		"headers": object{"x-count": int64(3)},
	}), got)
	var paths []string
	for _, l := range v.Templates() {
		paths = append(paths, l.Path)
	}
	if d := cmp.Diff([]string{"first", "headers.x-count", "name", "prompt", "words"}, paths); d != "" {
		t.Errorf("paths (-want +got):\n%s", d)
	}
	static := v.Static(nil).(object)
	diff(t, "static", any(object{"x-count": nil}), static["headers"])
	diff(t, "static", any("small"), static["model"])
	if _, constant := v.Constant(); constant {
		t.Error("a value with templates is called constant")
	}
}

func TestConstantValueIsShared(t *testing.T) {
	t.Parallel()
	in := object{"a": list{int64(1), "x { y"}}
	v, faults := compileValue(in, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	if got, constant := v.Constant(); !constant || !cmp.Equal(any(in), got) {
		t.Errorf("got %v, %v", got, constant)
	}
	got, err := v.Eval(context.Background(), roots{})
	if err != nil || !cmp.Equal(any(in), got) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestValueReportsAllFaultsAtTheirPlace(t *testing.T) {
	t.Parallel()
	at := func(path string, line, column int) diag.Pos {
		return diag.Pos{File: "f.yaml", Line: line, Column: column, Path: "with." + path}
	}
	_, faults := compileValue(object{"a": "{{ x | uper }}", "b": list{"ok", object{"c": "{{"}}}, at)
	want := diag.List{
		{
			Code: "TEA1301", Severity: diag.Error, Pos: at("a", 1, 8), Hint: `did you mean "upper"?`,
			Message: `template: unknown filter "uper"`,
		},
		{
			Code: "TEA1301", Severity: diag.Error, Pos: at("b[1].c", 1, 1),
			Message: `template: {{ is not closed: }} is missing`,
		},
	}
	if d := cmp.Diff(want, faults); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestValueErrorNamesThePath(t *testing.T) {
	t.Parallel()
	v, _ := compileValue(object{"a": list{"{{ 1 / 0 }}"}}, nil)
	_, err := v.Eval(context.Background(), roots{})
	var eval *expr.EvalError
	if !errors.As(err, &eval) {
		t.Fatalf("got %v, want an EvalError", err)
	}
	if want := "evaluate a[0]: line 1, column 6: division by zero"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]expr.Ref{
		`{{ state.items[0].name }}`: {{Root: "state", Path: []string{"items", "0", "name"}, Line: 1, Column: 4}},
		`{{ state["a"][x.y].z }}`:   {{Root: "state", Path: []string{"a"}, Line: 1, Column: 4}, {Root: "x", Path: []string{"y"}, Line: 1, Column: 15}},
		"é\n{{ a | default(b) }}":   {{Root: "a", Line: 2, Column: 4, Optional: true}, {Root: "b", Line: 2, Column: 16}},
		`{{ a if b else c }}`:       {{Root: "a", Line: 1, Column: 4}, {Root: "b", Line: 1, Column: 9}, {Root: "c", Line: 1, Column: 16}},
		`{{ state.items() }}`:       {{Root: "state", Line: 1, Column: 4}},
		`{% for x in a.l if x > m %}{{ x.y }}{{ loop.index }}{% endfor %}{{ x }}`: {
			{Root: "a", Path: []string{"l"}, Line: 1, Column: 13}, {Root: "m", Line: 1, Column: 24}, {Root: "x", Line: 1, Column: 68},
		},
		`{{ s }}{% set s = 1 %}{{ s }}`: {{Root: "s", Line: 1, Column: 4}},
		`{% macro m(a, b=c) %}{{ a }}{{ d }}{% endmacro %}{{ m(e) }}`: {
			{Root: "c", Line: 1, Column: 17}, {Root: "d", Line: 1, Column: 32}, {Root: "e", Line: 1, Column: 55},
		},
		`{% with a=b %}{{ a }}{% endwith %}{{ range(3) }}`: {{Root: "b", Line: 1, Column: 11}},
		`text`: nil,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(want, mustCompile(t, text).Roots(), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	e, err := expr.CompileExpression("count > state.max && item", true)
	if err != nil {
		t.Fatal(err)
	}
	want := []expr.Ref{
		{Root: "count", Line: 1, Column: 1},
		{Root: "state", Path: []string{"max"}, Line: 1, Column: 9},
		{Root: "item", Line: 1, Column: 22},
	}
	if d := cmp.Diff(want, e.Roots()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestIsTemplate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"{{ x }}": true, "a {% if %}": true, "{# c #}": true, "{{": true,
		"": false, "{": false, "a { b } c": false, "{ {x} }": false, "}}": false, "${X}": false,
	} {
		if got := expr.IsTemplate(text); got != want {
			t.Errorf("IsTemplate(%q) = %v", text, got)
		}
	}
}

package expr_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/expr"
)

func TestSingleExpressionKeepsTheType(t *testing.T) {
	t.Parallel()
	s := roots{"state": object{
		"i": int64(9007199254740993), "f": 3.0, "s": "42", "b": true, "n": nil, "l": list{int64(1), "x"},
		"o": object{"k": list{}}, "long": json.Number("123456789012345678901234567890"),
		"group": list{object{"g": "a", "v": int64(1)}},
	}}
	for text, want := range map[string]any{
		`{{ state.i }}`:                      int64(9007199254740993),
		`{{ state.i + 1 }}`:                  int64(9007199254740994),
		`{{ state.f }}`:                      3.0,
		`{{ state.s }}`:                      "42",
		`{{ state.s | int }}`:                int64(42),
		`{{ state.b }}`:                      true,
		`{{ state.n }}`:                      nil,
		`{{ state.nope.deeper[3].x }}`:       nil,
		`{{ nowhere }}`:                      nil,
		`{{ state.nope[1:] }}`:               nil,
		`{{ state.nope.upper() }}`:           nil,
		`{{ "x" if state.nope }}`:            nil,
		`{{ state.l }}`:                      list{int64(1), "x"},
		`{{ state.o }}`:                      object{"k": list{}},
		`{{ state.long }}`:                   json.Number("123456789012345678901234567890"),
		`{{ state.long + 1 }}`:               json.Number("123456789012345678901234567891"),
		`{{ state.i == 1 or state.l }}`:      list{int64(1), "x"},
		`{{ [state.nope, {"a": 1}] }}`:       list{nil, object{"a": int64(1)}},
		`{{ state.group | groupby("g") }}`:   list{list{"a", list{object{"g": "a", "v": int64(1)}}}},
		`{{ namespace(a=1) }}`:               object{"a": int64(1)},
		`{{ {"a": nope, "b": [nope]} }}`:     object{"a": nil, "b": list{nil}},
		`{{ "\a\b\f\v\0\x41\q\U0001F600" }}`: "\a\b\f\v\x00A\\q😀",
		`{{ 7 / 2 }}`:                        3.5,
		`{{ 4 / 2 }}`:                        2.0,
		`{{ 7 // 2 }}`:                       int64(3),
		`{{ 1.0 }}`:                          1.0,
		`{{ "a" }}`:                          "a",
		`{{ '{"a": [1, 2.0]}' | fromjson }}`: object{"a": list{int64(1), 2.0}},
		"{{ state.i }}\n":                    "9007199254740993\n",
		`{{- state.i -}}`:                    int64(9007199254740993),
		` {{ state.i }}`:                     " 9007199254740993",
		`{{ state.s }}{{ state.s }}`:         "4242",
		`no template`:                        "no template",
		``:                                   "",
		`{{ state.l }} and {{ state.o }}`:    `[1,"x"] and {"k":[]}`,
		`<{{ state.n }}|{{ state.nope.x }}|{{ state.b }}|{{ state.f }}|{{ state.long }}>`: "<||true|3.0|123456789012345678901234567890>",
		"kept newline {{ state.s }}\n": "kept newline 42\n",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			diff(t, text, want, mustEval(t, text, s))
		})
	}
}

func TestFiltersOfTea(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`{{ {"b": [1, 2.0, none], "a": "<&>"} | tojson }}`: `{"a":"<&>","b":[1,2.0,null]}`,
		`{{ {"a": [1], "b": {}} | tojson(indent=2) }}`:     "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}",
		`{{ [1] | json }}`:                                          "[1]",
		`{{ missing | tojson }}`:                                    "null",
		`{{ {"a": 1} | pprint }}`:                                   "{\n  \"a\": 1\n}",
		`{{ "abc" | sha256 }}`:                                      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		`{{ "héllo" | b64encode }}`:                                 "aMOpbGxv",
		`{{ "aMOpbGxv" | b64decode }}`:                              "héllo",
		`{{ "Pz8_" | b64decode }}`:                                  "???",
		`{{ {"a": 1} | attr("a") }}`:                                int64(1),
		`{{ none | default("a") }}`:                                 "a",
		`{{ none | upper }}{{ none | join(",") }}{{ none | trim }}`: "",
		`{{ none | length }}`:                                       int64(0),
		`{{ none | list }}`:                                         list{},
		`{{ none | map("upper") | list }}`:                          list{},
		`{{ none | sum }}`:                                          int64(0),
		`{{ none | first }}`:                                        nil,
		`{{ none | sort }}`:                                         list{},
		`{{ none | fromjson }}`:                                     nil,
		`{{ none | int }}`:                                          int64(0),
		`{{ [5] | random }}`:                                        int64(5),
		`{{ "x" in none }}`:                                         false,
		`{% for x in none %}x{% endfor %}`:                          "",
		`{{ " a b  c d ".split(none, 2) }}`:                         list{"a", "b", "c d"},
		`{{ " a b ".split(none, 0) }}{{ "".split() }}`:              `["a b"][]`,
		`{{ "a" | truncate(9223372036854775807, true, "", 9223372036854775807) }}`: "a",
		`{{ "a b" | wordwrap(9223372036854775807) }}`:                              "a b",
		`{{ none.get("a") }}`:                             nil,
		`{{ "a" ~ none ~ 1 ~ true ~ [1] }}`:               "a1true[1]",
		`{{ [1, none, "a"] | join("-") }}`:                "1--a",
		`{{ {"items": 5}.items }}`:                        int64(5),
		`{{ {"items": 5}.items() }}`:                      list{list{"items", int64(5)}},
		`{{ 1 if !none && (none || 1) else 2 }}`:          int64(1),
		`{{ 0 ** 0 }} {{ (-1) ** 3 }} {{ 1 ** 9999999 }}`: "1 -1 1",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			diff(t, text, want, mustEval(t, text, roots{}))
		})
	}
}

func TestCompileExpression(t *testing.T) {
	t.Parallel()
	s := roots{"state": object{"ready": false, "x": int64(3), "items": list{int64(1), int64(2), int64(3)}, "name": "a || b"}, "item": int64(7)}
	for text, want := range map[string]any{
		`!ready`:                               true,
		`!state.ready`:                         true,
		`!ready && x == 3`:                     true,
		`ready || x`:                           int64(3),
		`!items | length`:                      false,
		`x != 1`:                               true,
		`x is defined and nope is not defined`: true,
		`state.items | length > 2`:             true,
		`items[0] + item`:                      int64(8),
		`name == "a || b"`:                     true,
		`nope == null`:                         true,
		`nope == none and nope == None`:        true,
		`True and not False`:                   true,
		` x  `:                                 int64(3),
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			e, err := expr.CompileExpression(text, true)
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Eval(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, text, want, got)
		})
	}
	e, err := expr.CompileExpression("x", false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.Eval(context.Background(), s); got != nil || err != nil {
		t.Errorf("a bare name without bareNames is %v, %v; want null", got, err)
	}
}

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text         string
		line, column int
		message      string
		hint         string
	}{
		{"{{ state.x", 1, 1, "{{ is not closed", ""},
		{"a\nbé {% if x %}", 2, 14, "{% endif %} is missing", ""},
		{"{{ }}", 1, 4, "expected an expression, found }}", ""},
		{"{{ a b }}", 1, 6, `expected }}, found "b"`, ""},
		{"{{ a | uper }}", 1, 8, `unknown filter "uper"`, "upper"},
		{"{{ a is defind }}", 1, 9, `unknown test "defind"`, "defined"},
		{"{{ a | map('uper') }}", 1, 8, `unknown filter "uper"`, "upper"},
		{"{{ a | select('evn') }}", 1, 8, `unknown test "evn"`, "even"},
		{"{{ rnge(3) }}", 1, 4, `unknown function "rnge"`, "range"},
		{"{% fore x in y %}", 1, 4, `unknown statement "fore"`, "for"},
		{"{% include 'x' %}", 1, 4, "cannot read other files", ""},
		{"{% import 'x' as y %}", 1, 4, "cannot read other files", ""},
		{"{% extends 'x' %}", 1, 4, "cannot read other files", ""},
		{"{% from 'x' import y %}", 1, 4, "cannot read other files", ""},
		{"{% for x in y %}{% endif %}", 1, 20, `unknown statement "endif"`, "endfor"},
		{"{{ (1 }}", 1, 7, `")" is missing`, ""},
		{"{{ 1 + }}", 1, 8, "expected an expression", ""},
		{"{{ 'abc }}", 1, 4, "the string is not closed", ""},
		{"{{ a $ b }}", 1, 6, `unexpected character '$'`, ""},
		{"{{ a | trim(1, 2) }}", 1, 8, "takes at most 1 argument(s)", ""},
		{"{{ a | truncate(lenght=3) }}", 1, 8, `has no argument "lenght"`, "length"},
		{"{{ a | replace('x') }}", 1, 8, `needs its argument "new"`, ""},
		{"{# never", 1, 1, "the comment {# is not closed", ""},
		{"{% break %}", 1, 4, "outside of a loop", ""},
		{"{% raw %}x", 1, 1, "endraw", ""},
		{"{{ 12x }}", 1, 4, "followed by a name", ""},
		{"{{ " + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200) + " }}", 1, 53, "nested deeper", ""},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			_, err := expr.Compile(c.text)
			var syntax *expr.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, want a SyntaxError", err)
			}
			if !strings.Contains(syntax.Message, c.message) || !strings.Contains(syntax.Hint, c.hint) {
				t.Errorf("got %q with hint %q, want %q with %q", syntax.Message, syntax.Hint, c.message, c.hint)
			}
			if d := cmp.Diff([]int{c.line, c.column}, []int{syntax.Line, syntax.Column}); d != "" && c.column != 53 {
				t.Errorf("position (-want +got): %s", d)
			}
		})
	}
}

func TestEvalErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		column int
		want   string
	}{
		{`{{ 1 / 0 }}`, 6, "division by zero"},
		{`{{ 1 // 0 }}`, 6, "division by zero"},
		{`{{ 1.5 % 0 }}`, 8, "division by zero"},
		{`{{ 0 ** -1 }}`, 6, "division by zero"},
		{`{{ state.x + 1 }}`, 12, "default(0)"},
		{`{{ 1 + "a" }}`, 6, "cannot calculate integer + string"},
		{`{{ "a" < 1 }}`, 8, "cannot compare string < integer"},
		{`{{ state.x > 1 }}`, 12, "default(0)"},
		{`{{ [1, "a"] | sort }}`, 15, "different types"},
		{`{{ "{" | fromjson }}`, 10, "invalid JSON at line 1, column 2: the text ends too early"},
		{`{{ "%%%" | b64decode }}`, 12, "not base64"},
		{`{% for x in 5 %}{% endfor %}`, 4, "integer has no elements"},
		{`{{ "a".uper() }}`, 8, "upper"},
		{`{% do [].append(1) %}`, 10, "values cannot be changed"},
		{`{% set a, b = [1] %}`, 4, "cannot assign 1 value(s) to 2 names"},
		{`{% set x = {} %}{% set x.y = 1 %}`, 20, "namespace"},
		{`{{ "%d" | format("x") }}`, 11, "%d needs a number"},
		{`{% macro m() %}{% endmacro %}{{ m(1) }}`, 33, "takes at most 0 argument(s)"},
		{`{{ [1] | map(x) }}`, 10, "must be a string, not null"},
		{`{{ "a" | center("x") }}`, 10, `"width" must be an integer, not string`},
		{`{{ 1 | length }}`, 8, "integer has no length"},
		{`{{ [1].index(2) }}`, 8, "not in the list"},
		{`{{ {[1]: 2} }}`, 4, "array cannot be the key"},
		{`{{ range }}{{ namespace() ~ range(0, 1, 0) }}`, 29, "step of range() cannot be 0"},
		{`{{ 1 | round(0, "up") }}`, 8, "the method must be"},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			_, err := mustCompile(t, c.text).Eval(context.Background(), roots{"state": object{}})
			var eval *expr.EvalError
			if !errors.As(err, &eval) {
				t.Fatalf("got %v, want an EvalError", err)
			}
			if !strings.Contains(eval.Error(), c.want) {
				t.Errorf("got %q, want %q in it", eval, c.want)
			}
			if eval.Line != 1 || eval.Column != c.column {
				t.Errorf("at line %d, column %d, want 1, %d", eval.Line, eval.Column, c.column)
			}
		})
	}
}

func TestValuesAreNotGoObjects(t *testing.T) {
	t.Parallel()
	s := roots{"state": object{"s": "x", "o": object{"__class__x": int64(1)}}}
	for _, text := range []string{`{{ state.__class__ }}`, `{{ state.s.__class__.__mro__ }}`, `{{ state.o.Keys }}`, `{{ state.s.Len }}`} {
		if got := mustEval(t, text, s); got != nil {
			t.Errorf("%s is %v, want null", text, got)
		}
	}
	if _, err := mustCompile(t, `{{ state.s.String() }}`).Eval(context.Background(), s); err == nil {
		t.Error("a Go method could be called")
	}
}

func TestTemplateIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	tmpl := mustCompile(t, `{% set n = namespace(v=0) %}{% for x in state.nums %}{% set n.v = n.v + x %}{% endfor %}{{ n.v }} {{ state.words | sort | join }}`)
	want := mustEval(t, tmpl.Text(), jinjaState())
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				got, err := tmpl.Eval(context.Background(), jinjaState())
				if err != nil || got != want {
					t.Fatalf("got %v, %v", got, err)
				}
			}
		})
	}
}

func TestScopeStaysUnchanged(t *testing.T) {
	t.Parallel()
	s, before := jinjaState(), jinjaState()
	for _, c := range jinjaCases {
		mustEval(t, c.template, s)
	}
	diff(t, "scope", before, s)
}

func TestPlainLookupAllocatesNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts for the whole process
	tmpl := mustCompile(t, `{{ state.nested.list[1].x }}`)
	s, ctx := expr.Scope(jinjaState()), context.Background()
	if n := testing.AllocsPerRun(100, func() { _, _ = tmpl.Eval(ctx, s) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCanceledContextEndsEvaluation(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := mustCompile(t, `{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}`).Eval(ctx, roots{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

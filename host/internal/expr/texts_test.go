package expr_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// TestTextBesideAnExpressionIsKept compares with what Jinja2 makes of generated
// texts; testdata/texts.py writes them.
func TestTextBesideAnExpressionIsKept(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Template, Text string
		Single         bool
	}
	data, err := os.ReadFile("testdata/texts.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	s := roots{"state": object{
		"n": int64(5), "s": "word", "r": object{"a": list{int64(1), "x"}}, "lines": "one\ntwo\n", "yes": true, "no": false,
		"list": list{int64(1), int64(2)},
	}}
	for _, c := range cases {
		got := mustEval(t, c.Template, s)
		if text, ok := got.(string); ok {
			diff(t, c.Template, c.Text, text)
		} else if !c.Single {
			t.Errorf("%q is %v (%T), not the text %q", c.Template, got, got, c.Text)
		} else if got != nil && fmt.Sprint(got) != c.Text {
			t.Errorf("%q is %v, Jinja2 writes %q", c.Template, got, c.Text)
		}
	}
	if len(cases) != 200 {
		t.Errorf("there are %d texts, not 200", len(cases))
	}
}

func TestLineEndAfterAnExpressionIsKept(t *testing.T) {
	t.Parallel()
	s := roots{"state": object{"n": int64(5), "r": object{"a": int64(1)}}}
	for text, want := range map[string]any{
		"{{ state.n }}":            int64(5),
		"{{- state.n -}}\n":        int64(5),
		"{{ state.n }}{# note #}":  int64(5),
		"{{ state.n }}\n":          "5\n",
		"{{ state.n }}\n\n":        "5\n\n",
		"{{ state.n }}\r\n":        "5\r\n",
		"{{ state.n }}\r":          "5\r",
		"\n{{ state.n }}":          "\n5",
		"{{ state.r | tojson }}\n": "{\"a\":1}\n",
		"{{ state.r }}\n":          "{\"a\":1}\n",
		"{{ state.nope }}\n":       "\n",
		"{{ state.n }}\u2028":      "5\u2028",
	} {
		diff(t, text, want, mustEval(t, text, s))
	}
}

func TestIgnoreSpace(t *testing.T) {
	t.Parallel()
	s := roots{"state": object{"n": int64(5), "no": false, "l": list{int64(1)}}}
	for text, want := range map[string]any{
		"{{ state.n }}":                              int64(5),
		" {{ state.n }}\r\n\n":                       int64(5),
		"\n {# note #} {{ state.l }} {# note #}\t\n": list{int64(1)},
		" {% if state.no %}x{% endif %} \n":          "",
		" {{ state.n }} {{ state.n }}\n":             "5 5",
		" text {{ state.n }} ":                       "text 5",
		" {# note #}\n":                              "",
	} {
		tmpl := mustCompile(t, text)
		got, err := tmpl.IgnoreSpace().Eval(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, text, want, got)
		kept, err := tmpl.Eval(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "unchanged "+text, mustEval(t, text, s), kept)
	}
	v, _ := compileValue("{{ state.l }}\n", nil)
	got, err := v.IgnoreSpace().Eval(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "value", any(list{int64(1)}), got)
}

package expr_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host/internal/expr"
)

// TestHostileTemplatesEnd runs what would take all time or memory. Each must
// end with a specific error; the context's deadline is the last resort.
func TestHostileTemplatesEnd(t *testing.T) {
	t.Parallel()
	double := `{% set x = "0123456789abcdef" %}` + strings.Repeat(`{% set x = x ~ x %}`, 40) + `{{ x | length }}`
	graph := `{% set x = [1] %}` + strings.Repeat(`{% set x = [x, x] %}`, 40) + `{{ x }}`
	for name, c := range map[string]struct{ text, want string }{
		"range":             {`{{ range(10**9) }}`, "range() has more than"},
		"range overflow":    {`{{ range(0, 9223372036854775807, 4611686018427387904) }}`, ""},
		"string repeat":     {`{{ "a" * 10**9 }}`, "longer than"},
		"repeat reversed":   {`{{ 10**9 * "a" }}`, "longer than"},
		"list repeat":       {`{{ [1] * 10**9 }}`, "more than"},
		"nested repeat":     {`{{ ([[1] * 1000] * 1000) * 1000 }}`, "more than"},
		"power":             {`{{ 9 ** (9 ** 9) }}`, "digits"},
		"power of two":      {`{{ 2 ** 99999999999 }}`, "digits"},
		"long product":      {"{{ " + strings.Repeat("10**4000*", 3) + "1 }}", "digits"},
		"long literal":      {"{{ " + strings.Repeat("9", 5000) + " }}", "more than 4300 digits"},
		"center":            {`{{ "a" | center(10**9) }}`, "longer than"},
		"indent":            {`{{ "a\nb" | indent(10**9) }}`, "longer than"},
		"ljust":             {`{{ "a".ljust(10**9) }}`, "longer than"},
		"zfill":             {`{{ "a".zfill(10**9) }}`, "longer than"},
		"format width":      {`{{ "%999999999d" | format(1) }}`, "width"},
		"format precision":  {`{{ "%.999999999f" | format(1) }}`, "width"},
		"batch":             {`{{ [1] | batch(10**9, 0) }}`, "rows of"},
		"slice":             {`{{ [1] | slice(10**9, 0) }}`, "columns"},
		"round":             {`{{ 1.5 | round(10**9) }}`, "precision"},
		"replace":           {`{{ ("a" * 100000) | replace("a", "b" * 100000) }}`, "longer than"},
		"replace nothing":   {`{{ ("a" * 100000) | replace("", "b" * 100000) }}`, "longer than"},
		"split":             {`{{ ("a" * 5000000).split("a") }}`, "parts"},
		"wordwrap":          {`{{ ("a" * 5000000) | wordwrap(1) }}`, "parts"},
		"join":              {`{{ range(1000) | join("a" * 1000000) }}`, "longer than"},
		"tojson indent":     {`{{ [1] | tojson(indent=10**9) }}`, "indented"},
		"growing text":      {double, "longer than"},
		"growing value":     {graph, "more than"},
		"growing namespace": {`{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x == n.x }}`, "more than"},
		"growing output":    {`{% for i in range(99999) %}{{ "0123456789" * 10000 }}{% endfor %}`, "longer than"},
		"own namespace":     {`{% set n = namespace() %}{% set n.n = n %}{{ n }}`, "part of another value"},
		"hidden namespace":  {`{% set n = namespace() %}{% set n.n = [n] %}{{ n }}`, "part of another value"},
		"endless macro":     {`{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`, "levels deep"},
		"growing macro":     {`{% macro m(x) %}{{ m([x, x]) }}{% endmacro %}{{ m(1) }}`, "more than"},
		"endless recursion": {`{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}`, "levels deep"},
		"endless caller":    {`{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}`, "levels deep"},
		"pattern":           {`{{ ("<!--" * 100000) | striptags | length }}`, ""},
		"long word":         {`{{ ("a" * 200000) | wordwrap(1) | length }}`, ""},
		"brackets":          {"{{ " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + " }}", "nested deeper"},
		"not":               {"{{ " + strings.Repeat("not ", 5000) + "1 }}", "nested deeper"},
		"minus":             {"{{ " + strings.Repeat("-", 5000) + "1 }}", "nested deeper"},
		"exclamation":       {"{{ " + strings.Repeat("!", 5000) + "1 }}", "nested deeper"},
		"else":              {"{{ " + strings.Repeat("1 if 0 else ", 3000) + "1 }}", "nested deeper"},
		"ifs":               {strings.Repeat("{% if 1 %}", 3000), "nested deeper"},
		"many pieces":       {"{{ 1" + strings.Repeat("+1", 100000) + " }}", "too long"},
		"many tags":         {strings.Repeat("{{ 1 }}", 100000), "too long"},
		"long sum":          {"{{ 1" + strings.Repeat("+1", 9000) + " }}", ""},
		"deep JSON":         {`{{ ("[" * 5000 ~ "]" * 5000) | fromjson | list }}`, "nested deeper"},
		"deeper JSON":       {`{{ ("[" * 100000) | fromjson }}`, "invalid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			tmpl, err := expr.Compile(c.text)
			if err == nil {
				_, err = tmpl.Eval(ctx, roots{})
			}
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q in the error", err, c.want)
			}
			var syntax *expr.SyntaxError
			var eval *expr.EvalError
			if err != nil && !errors.As(err, &syntax) && !errors.As(err, &eval) {
				t.Errorf("got a %T", err)
			}
		})
	}
}

func FuzzTemplate(f *testing.F) {
	for _, c := range jinjaCases {
		f.Add(c.template)
	}
	for _, text := range []string{"{{", "{%", "{#", "{{ '", "{% raw", "{% for", "{{ a[", "{{ a.", "{{ 1e", "{{ 0x", "{{ \"\\u", "{{ a(*b, **c) }}", "{% call(x) y() %}", "{%- -%}", "{{-}}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		started := time.Now()
		if tmpl, err := expr.Compile(text); err == nil {
			_, err = tmpl.Eval(ctx, jinjaState())
			if err != nil && strings.Contains(err.Error(), "internal error") {
				t.Fatal(err)
			}
			tmpl.Roots()
		}
		if e, err := expr.CompileExpression(text, true); err == nil {
			_, err = e.Eval(ctx, jinjaState())
			if err != nil && strings.Contains(err.Error(), "internal error") {
				t.Fatal(err)
			}
		}
		if took := time.Since(started); took > 10*time.Second {
			t.Fatalf("took %v", took)
		}
	})
}

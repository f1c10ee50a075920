package jmespath_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/builtin/jmespath"
	"github.com/the-edge-agent/tea/sdk/value"
)

func TestCompileErrorsHaveAPosition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expression, message string
		column              int
	}{
		{"foo.", "", 5},
		{"foo[?a == ]", "", 11},
		{`"ä".b.#`, "unknown character", 7},
		{"foo.`1`", "", 6},
		{"a == `[1,` || b", "literal", 10},
		{"`1` == `2` ]", "", 12},
		{"a == 'b", "not closed", 6},
		{"[?a == `1`", "expected ], found the end", 11},
		{"a[", "expected *, found the end", 3},
		{"a.b.", "expected a name, [ or {", 5},
		{"a[1:x]", "expected : or a number, found a name", 5},
		{"a <= ", "the expression is incomplete", 6},
		{"lenght(a)", `did you mean "length"?`, 1},
		{"a | length(a, b)", "needs 1 arguments, got 2", 5},
	} {
		_, err := jmespath.Compile(c.expression)
		var syntax *jmespath.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%s: error %v, want a SyntaxError", c.expression, err)
			continue
		}
		if syntax.Column != c.column || !strings.Contains(syntax.Error(), c.message) {
			t.Errorf("%s: column %d, %v; want column %d and %q", c.expression, syntax.Column, err, c.column, c.message)
		}
	}
}

func TestIndexBeyondAnyList(t *testing.T) {
	t.Parallel()
	_, err := jmespath.Compile("a[99999999999999999999]")
	if err == nil || err.Error() != "an index is too large" {
		t.Errorf("got %v", err)
	}
}

func TestRunErrorsNameTheFunction(t *testing.T) {
	t.Parallel()
	_, err := search(t, `{"a":["x",1]}`, "sum(a)")
	if want := "sum() needs array of numbers as argument 1, got array of string ..."; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestHostileExpressionsEnd(t *testing.T) {
	t.Parallel()
	for name, expression := range map[string]string{
		"doubling lists":    "[@,@]" + strings.Repeat("|[@,@]", 60),
		"doubling text":     "to_string(@)" + strings.Repeat("|join('',[@,@,@,@,@,@,@,@])", 12),
		"nested maps":       "map(&map(&map(&map(&map(&map(&@,$),$),$),$),$),$)",
		"growing numbers":   strings.Repeat("let $x = `99` in ", 1) + "let $x = $x * $x in " + strings.Repeat("let $x = $x * $x in ", 60) + "$x",
		"compare doubled":   "[@,@]" + strings.Repeat("|[@,@]", 60) + "|@ == reverse(@)",
		"parentheses":       strings.Repeat("(", 16<<10),
		"not":               strings.Repeat("!", 16<<10-1) + "a",
		"too long":          strings.Repeat("a", 20<<10),
		"replace grows":     "to_string(@)" + strings.Repeat("|replace(@,'','xxxxxxxx')", 12),
		"escaping doubles":  strings.Repeat("to_string([", 200) + "'\"'" + strings.Repeat("])", 200),
		"not UTF-8":         "a\xff",
		"an ending bracket": "foo[",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := make([]any, 50)
			for i := range data {
				data[i] = int64(i)
			}
			e, err := jmespath.Compile(expression)
			if err == nil {
				_, err = e.Search(t.Context(), data)
			}
			if err == nil && name != "not" {
				t.Error("works, want an error")
			}
		})
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	e, err := jmespath.Compile("map(&map(&@, $), $)")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Search(ctx, make([]any, 2000)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"foo", "a.b[0:1:-1]", "sort_by(a, &b)", "let $x = a in $x", "`1` + a", "*.*[]", "a[?b == 'c']", "{a: b, \"c\": `[1]`}"} {
		f.Add(seed)
	}
	data, err := value.Decode([]byte(`{"a":[{"b":1,"c":"x"},{"b":2.5}],"foo":{"bar":[1,[2]]},"s":"text"}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		e, err := jmespath.Compile(expression)
		if err != nil {
			return
		}
		got, err := e.Search(t.Context(), data)
		if err != nil {
			return
		}
		if _, err := value.Encode(got); err != nil {
			t.Errorf("the result of %q is not a value: %v", expression, err)
		}
	})
}

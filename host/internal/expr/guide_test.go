package expr_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/sdk/value"
)

// fence is one fenced block of the guide.
type fence struct{ kind, text string }

func readGuide(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide", "templates.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func fences(page string) []fence {
	var out []fence
	for _, m := range regexp.MustCompile("(?ms)^```(\\w[\\w ]*)\n(.*?)\n```$").FindAllStringSubmatch(page, -1) {
		out = append(out, fence{m[1], m[2]})
	}
	return out
}

// TestGuide evaluates each example of docs/guide/templates.md: a fence with a
// template or an expression followed by one with its result or its error, and
// the rows of the table of filters.
func TestGuide(t *testing.T) {
	t.Parallel()
	page := readGuide(t)
	blocks := fences(page)
	var s roots
	checked := 0
	for i, b := range blocks {
		switch b.kind {
		case "json roots":
			s = roots(decode(t, b.text).(object))
		case "jinja", "expression":
			checkExample(t, b, blocks[i+1], s)
			checked++
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\|.*\\| `(\\{\\{.*\\}\\})` \\| `(.*)` \\|$").FindAllStringSubmatch(page, -1) {
		template := strings.ReplaceAll(row[1], `\|`, "|")
		diff(t, template, decode(t, row[2]), mustEval(t, template, s))
		checked++
	}
	if checked < 70 {
		t.Errorf("only %d examples were found", checked)
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	v, err := value.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func checkExample(t *testing.T, example, result fence, s roots) {
	t.Helper()
	compile := expr.Compile
	if example.kind == "expression" {
		compile = func(text string) (*expr.Template, error) { return expr.CompileExpression(text, true) }
	}
	var got any
	tmpl, err := compile(example.text)
	if err == nil {
		got, err = tmpl.Eval(context.Background(), s)
	}
	switch {
	case result.kind == "error" && err != nil:
		diff(t, example.text, any(result.text), any(err.Error()))
	case result.kind == "json" && err == nil:
		diff(t, example.text, decode(t, result.text), got)
	default:
		t.Errorf("%q gives %v, %v; the guide shows %s %s", example.text, got, err, result.kind, result.text)
	}
}

// TestGuideNamesEverything finds filters, tests and functions that the guide
// forgets.
func TestGuideNamesEverything(t *testing.T) {
	t.Parallel()
	page := readGuide(t)
	filters, tests, functions := expr.Names()
	for kind, names := range map[string][]string{"| `": filters, "`": append(tests, functions...)} {
		for _, name := range names {
			if !regexp.MustCompile(regexp.QuoteMeta(kind+name) + "[`(]").MatchString(page) {
				t.Errorf("the guide does not name %s", name)
			}
		}
	}
}

package diagcode_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pages = "../../../docs/errors"

// TestEveryCodeHasAPage reads the constants from the source, since a program
// cannot list them.
func TestEveryCodeHasAPage(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, v := range spec.Values {
				code, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				constants = append(constants, code+".md")
			}
		}
		return true
	})
	if !slices.IsSorted(constants) || len(slices.Compact(slices.Clone(constants))) != len(constants) {
		t.Error("the codes are not in order, or one appears twice")
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
		page, err := os.ReadFile(filepath.Join(pages, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^# TEA\d{4}: [A-Z].*[^.\n]\n`).Match(page) || string(page[2:9])+".md" != e.Name() {
			t.Errorf("%s does not begin with its code and a title", e.Name())
		}
	}
	if d := cmp.Diff(constants, found); d != "" {
		t.Errorf("constants (-) and pages (+) differ:\n%s", d)
	}
}

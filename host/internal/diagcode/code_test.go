package diagcode_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
)

// TestTableHoldsEveryConstant reads the constants from the source, since a
// program cannot list them.
func TestTableHoldsEveryConstant(t *testing.T) {
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
				constants = append(constants, code)
			}
		}
		return true
	})
	var table []string
	for _, info := range diagcode.All() {
		if info.Title == "" {
			t.Errorf("%s has no title", info.Code)
		}
		table = append(table, info.Code)
	}
	if d := cmp.Diff(constants, table); d != "" {
		t.Errorf("constants (-) and table (+) differ:\n%s", d)
	}
	if !slices.IsSorted(table) || len(slices.Compact(slices.Clone(table))) != len(table) {
		t.Error("the codes are not in order, or one appears twice")
	}
}

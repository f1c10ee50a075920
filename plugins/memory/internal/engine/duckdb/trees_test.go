//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// trees are the answers of json_serialize_sql of DuckDB 2.0.1, which has no Go
// library yet.
//
//go:embed testdata/trees-2.0.json
var trees []byte

func TestTheGuardReadsTheTreesOfDuckDB2(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Query   string
		Refused bool
		Tree    map[string]any
	}
	decoder := json.NewDecoder(bytes.NewReader(trees))
	decoder.UseNumber()
	if err := decoder.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		bounds := store.Sandbox{Tables: []string{"orders"}}
		if strings.Contains(c.Query, "$1") {
			bounds.Args = []any{int64(1)}
		}
		if err := newGuard(c.Query, bounds).check(c.Tree); (err != nil) != c.Refused {
			t.Errorf("%s: %v", c.Query, err)
		}
	}
}

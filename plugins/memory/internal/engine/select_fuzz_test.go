package engine_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// elsewhere makes other what a query from outside must not see.
var elsewhere = []string{
	`UPDATE secret SET x = 'other'`, `INSERT INTO secret VALUES ('a'), ('b')`, `UPDATE hidden_notes SET private = 'other'`,
	`UPDATE vault SET body = '{}' WHERE hidden IS NOT NULL`, `INSERT INTO vault VALUES (9, '9', true, 'x')`, `INSERT INTO documents VALUES ('k', 'i', '{}', 1, 1)`,
	`CREATE TABLE further (secret INTEGER)`,
}

// answered is what a query from outside has as an answer.
type answered struct {
	Rows    [][]any
	Columns []string
	Refused bool
}

func answerOf(t *testing.T, e *engine.Engine, query string) (a answered, known bool) {
	t.Helper()
	bounds := outside()
	bounds.Timeout, bounds.MaxRows = 300*time.Millisecond, 20
	table, err := e.Select(t.Context(), query, bounds)
	if err == nil {
		return answered{Rows: table.Rows, Columns: table.Columns}, true
	}
	switch tea.AsError(err).Type {
	case tea.ValidationError, tea.QueryError:
		return answered{Refused: true}, true
	case tea.Timeout:
		return answered{}, false
	}
	t.Errorf("%q ends with %v", query, err)
	return answered{}, false
}

// fuzzSelect has two databases that differ in what is hidden only: whatever
// the query, the answers are equal, and nothing is written.
func fuzzSelect(f *testing.F, dialect store.Dialect) {
	var driver engine.Driver
	for _, d := range drivers(f) {
		if d.Dialect() == dialect {
			driver = d
		}
	}
	if driver == nil {
		f.Skip("this build has no " + string(dialect))
	}
	for _, c := range answers {
		if len(c.args) == 0 {
			f.Add(c.query)
		}
	}
	for _, family := range attacks {
		for i, a := range family {
			if len(a.query) < 300 && i%6 == 0 { // the others have a test of their own
				f.Add(a.query)
			}
		}
	}
	one, other := stocked(f, driver, f.TempDir()), stocked(f, driver, f.TempDir())
	err := other.Write(f.Context(), func(ctx context.Context, tx store.Tx) error {
		for _, q := range elsewhere {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	f.Chdir(dir)
	f.Fuzz(func(t *testing.T, query string) {
		first, known := answerOf(t, one, query)
		second, knownToo := answerOf(t, other, query)
		if known && knownToo && !cmp.Equal(first, second) {
			again, _ := answerOf(t, one, query)
			if cmp.Equal(first, again) && !strings.Contains(query, "current") {
				t.Errorf("%q reveals what is hidden: %v, %v", query, first, second)
			}
		}
		checkUnharmed(t, one, query)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%q has made files: %v %v", query, entries, err)
		}
	})
}

func FuzzSelectSQLite(f *testing.F) { fuzzSelect(f, store.SQLite) }

func FuzzSelectDuckDB(f *testing.F) { fuzzSelect(f, store.DuckDB) }

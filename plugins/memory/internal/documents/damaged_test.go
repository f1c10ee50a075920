package documents_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// TestADamagedDocumentEndsNoQuery reads documents of which one is not JSON and
// another one has values of other types.
func TestADamagedDocumentEndsNoQuery(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		e, err := engine.Open(t.Context(), engine.Options{Dir: t.TempDir(), Driver: driver})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		docs := devicetest.Documents(e)
		rows := [][]any{
			{"k", "a", `{"size": 1, "on": true, "at": "2030-01-01T00:00:00Z", "meta": {"x": 1}}`, 1, 1},
			{"k", "b", `{"size": 2, "on": tr`, 1, 2},
			{"k", "c", `{"size": "many", "on": "perhaps", "at": "not a time", "meta": "none"}`, 1, 3},
			{"k", "d", `[1, 2]`, 1, 4},
			{"k", "e", ``, 1, 5},
			{"k", "f", `{"size": 6, "on": false, "at": "2030-01-02T00:00:00Z"}`, 1, 6},
		}
		if err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			for _, row := range rows {
				if _, err := tx.Exec(ctx, "INSERT INTO documents VALUES (?, ?, ?, ?, ?)", row...); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}

		found, err := docs.Query(t.Context(), store.DocumentQuery{Kind: "k", OrderBy: "size", Where: []store.Condition{{Field: "size", Op: store.Gt, Value: int64(0)}}})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, d := range found {
			ids = append(ids, d.ID)
		}
		if diff := cmp.Diff([]string{"a", "f"}, ids); diff != "" {
			t.Errorf("documents with a size (-want +got):\n%s", diff)
		}

		view := documents.View(driver.Dialect(), "things", "k", []documents.Shown{
			{Name: "id"},
			{Name: "size", Field: "size", As: documents.Number},
			{Name: "turned_on", Field: "on", As: documents.Bool},
			{Name: "at", Field: "at", As: documents.Instant},
			{Name: "meta", Field: "meta", As: documents.Object},
		})
		table, err := e.Select(t.Context(), "SELECT * FROM things ORDER BY id", store.Sandbox{Views: []store.View{view}, MaxRows: 100, MaxBytes: 1 << 20, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range table.Rows {
			got = append(got, strings.TrimRight(fmt.Sprintln(row...), "\n"))
		}
		t.Log(strings.Join(got, "\n"))
		if len(got) != len(rows) || !strings.HasPrefix(got[0], "a 1 true 2030-01-01") || !strings.HasPrefix(got[5], "f 6 false 2030-01-02") {
			t.Errorf("the view shows\n%s", strings.Join(got, "\n"))
		}
	})
}

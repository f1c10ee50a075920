package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func TestStatementsAreDroppedWhileTheyRun(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		for i := range 5 {
			if err := add(t.Context(), e, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		var group sync.WaitGroup
		for w := range 4 {
			group.Go(func() {
				for i := range 300 {
					rows, err := e.Query(t.Context(), fmt.Sprintf("SELECT id, %d FROM documents", i*(w%2+1)))
					if err != nil {
						t.Error(err)
						return
					}
					n := 0
					for rows.Next() {
						n++
					}
					if err := rows.Err(); err != nil || n != 5 {
						t.Errorf("%d rows, %v", n, err)
					}
					rows.Close()
				}
			})
		}
		group.Wait()
		err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			rows, err := tx.Query(ctx, "SELECT id FROM documents")
			if err != nil {
				return err
			}
			defer rows.Close()
			for i := range 600 {
				other, err := tx.Query(ctx, fmt.Sprintf("SELECT %d", i))
				if err != nil {
					return err
				}
				if err := other.Close(); err != nil {
					return err
				}
			}
			n := 0
			for rows.Next() {
				n++
			}
			if n != 5 {
				t.Errorf("%d rows in the transaction, want 5", n)
			}
			return rows.Err()
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestStatementsFollowTheirTables(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		columns := func() string {
			rows, err := e.Query(t.Context(), "SELECT * FROM mine")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			names, err := rows.Columns()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(names, " ")
		}
		for _, step := range []struct{ change, want string }{
			{"CREATE TABLE mine (a INTEGER)", "a"},
			{"ALTER TABLE mine ADD COLUMN b TEXT", "a b"},
			{"DROP TABLE mine", ""},
			{"CREATE TABLE mine (c INTEGER)", "c"},
		} {
			err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Exec(ctx, step.change)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if step.want == "" {
				_, err := e.Query(t.Context(), "SELECT * FROM mine") //nolint:rowserrcheck,sqlclosecheck // there are none
				wantType(t, "a table that is gone", err, tea.QueryError)
			} else if got := columns(); got != step.want {
				t.Errorf("after %s: columns %q", step.change, got)
			}
		}
	})
}

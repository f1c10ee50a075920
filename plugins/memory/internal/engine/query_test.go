package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func TestQueryEngine(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, e *database){
		"values":           queryValues,
		"identity":         queryIdentity,
		"errors":           queryErrors,
		"all or none":      queryAllOrNone,
		"own writes":       queryOwnWrites,
		"append":           queryAppend,
		"after commit":     queryAfterCommit,
		"rows":             queryRows,
		"select":           querySelect,
		"harms no other":   queryHarmsNoOther,
		"concurrent":       queryConcurrent,
		"canceled":         queryCanceled,
		"canceled waiting": queryCanceledWaiting,
		"closed":           queryClosed,
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, driver engine.Driver) {
				e := &database{options: engine.Options{Dir: t.TempDir(), Driver: driver}}
				e.reopen(t)
				t.Cleanup(func() {
					if err := e.Close(); err != nil {
						t.Error(err)
					}
				})
				test(t, e)
			})
		})
	}
}

// database is an engine. Its tests use the table of documents.
type database struct {
	*engine.Engine
	options engine.Options
}

// reopen closes the database if it is open, and opens it.
func (e *database) reopen(t *testing.T) {
	t.Helper()
	if e.Engine != nil {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e.Engine = must(engine.Open(t.Context(), e.options))(t)
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// must returns a function that returns v, or ends the test with err.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func addIn(ctx context.Context, tx store.Tx, id string) error {
	n, err := tx.Exec(ctx, insert, "k", id, "{}", 1, 1)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows were added", n)
	}
	return err
}

func (e *database) add(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := add(t.Context(), e.Engine, id); err != nil {
			t.Fatal(err)
		}
	}
}

// ids returns the ids of all documents.
func (e *database) ids(t *testing.T) string {
	t.Helper()
	rows := must(e.Query(t.Context(), "SELECT id FROM documents ORDER BY id"))(t)
	return strings.Join(scanTexts(t, rows), " ")
}

func scanTexts(t *testing.T, rows store.Rows) []string {
	t.Helper()
	defer rows.Close()
	texts := []string{}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return texts
}

func queryValues(t *testing.T, e *database) {
	for _, test := range []struct {
		id, body     string
		version, seq int64
	}{{"a", "Grüße \x00 '\" \\ 😀\n", 1<<63 - 1, -1 << 63}, {"A", "", 0, 0}, {"日本 ", strings.Repeat("x", 3<<20), 1, 2}} {
		err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, insert, "k", test.id, test.body, test.version, test.seq)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			rows := must(e.Query(t.Context(), "SELECT body, version, seq, NULL FROM documents WHERE id = ?", test.id))(t)
			var body string
			var version, seq int64
			var null *string
			if !rows.Next() || rows.Scan(&body, &version, &seq, &null) != nil || rows.Next() {
				t.Fatalf("not one row: %v", rows.Err())
			}
			if body != test.body || version != test.version || seq != test.seq || null != nil {
				t.Errorf("%q: %.20q %d %d %v", test.id, body, version, seq, null)
			}
			rows.Close()
			e.reopen(t)
		}
	}
}

func queryIdentity(t *testing.T, e *database) {
	first, dialect := must(e.Identity(t.Context()))(t), e.Dialect()
	want(t, "there is an identity", first != "", true)
	e.reopen(t)
	want(t, "identity", must(e.Identity(t.Context()))(t), first)
	want(t, "dialect", e.Dialect(), dialect)
}

func queryErrors(t *testing.T, e *database) {
	_, err := e.Query(t.Context(), "SELECT nothing FROM nowhere")
	wantType(t, "a query of no table", err, tea.QueryError)
	for what, query := range map[string]string{"a table that does not exist": "INSERT INTO nowhere VALUES (1)", "no SQL": "EVERYTHING AND MORE"} {
		err = e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, query)
			return err
		})
		wantType(t, what, err, tea.QueryError)
	}
	e.add(t, "a")
	wantType(t, "a key that exists", add(t.Context(), e.Engine, "a"), tea.QueryError)
	own := errors.New("the caller's own")
	typedOwn := tea.Errorf(tea.NotFound, "typed")
	for _, wanted := range []error{own, typedOwn, store.ErrConflict, store.ErrNotFound} {
		err = e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return errors.Join(addIn(ctx, tx, "b"), fmt.Errorf("wrapped: %w", wanted))
		})
		want(t, fmt.Sprintf("%v is returned unchanged", wanted), errors.Is(err, wanted), true)
	}
	err = e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := addIn(ctx, tx, "c"); err != nil {
			return err
		}
		panic("no")
	})
	want(t, "a panic is an error", err != nil, true)
	want(t, "documents", e.ids(t), "a")
	for range 10 { // none of these makes the database unusable
		wantType(t, "again", add(t.Context(), e.Engine, "a"), tea.QueryError)
	}
	e.add(t, "d")
}

func queryAllOrNone(t *testing.T, e *database) {
	e.add(t, "a")
	err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
		for _, id := range []string{"b", "c", "a"} { // the last exists
			if err := addIn(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	wantType(t, "the last one", err, tea.QueryError)
	for range 2 {
		want(t, "documents", e.ids(t), "a")
		e.reopen(t)
	}
}

func queryOwnWrites(t *testing.T, e *database) {
	e.add(t, "a")
	err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := addIn(ctx, tx, "b"); err != nil {
			return err
		}
		want(t, "others see", e.ids(t), "a")
		rows, err := tx.Query(ctx, "SELECT id FROM documents ORDER BY id")
		if err != nil {
			return err
		}
		want(t, "the transaction sees", scanTexts(t, rows), []string{"a", "b"})
		n, err := tx.Exec(ctx, "DELETE FROM documents WHERE kind = ?", "k")
		want(t, "removed", n, 2)
		return err
	})
	want(t, "the error", err, nil)
	want(t, "documents", e.ids(t), "")
}

func queryAppend(t *testing.T, e *database) {
	var rows [][]any
	for i := range 3000 {
		rows = append(rows, []any{"k", fmt.Sprintf("%04d", i), "{}", int64(i), int64(i)})
	}
	bulk := func(rows [][]any) error {
		return e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error { return tx.Append(ctx, "documents", rows...) })
	}
	want(t, "the error", bulk(rows), nil)
	want(t, "of none", bulk(nil), nil)
	twice := bulk([][]any{{"k", "new", "{}", int64(1), int64(1)}, rows[7]})
	wantType(t, "a key that exists", twice, tea.QueryError)
	for range 2 {
		ids := strings.Fields(e.ids(t))
		if len(ids) != 3000 || ids[2999] != "2999" {
			t.Errorf("%d documents", len(ids))
		}
		e.reopen(t)
	}
}

func queryAfterCommit(t *testing.T, e *database) {
	const writers = 40
	var mu sync.Mutex
	var committed, notified []int
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			done := false
			err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
				tx.AfterCommit(func() {
					mu.Lock()
					defer mu.Unlock()
					notified, done = append(notified, i), true
				})
				if i%8 == 7 {
					return errors.New("no")
				}
				rows, err := tx.Query(ctx, "SELECT count(*) FROM documents")
				if err != nil {
					return err
				}
				rows.Close()
				return addIn(ctx, tx, fmt.Sprint(i))
			})
			mu.Lock()
			defer mu.Unlock()
			if wanted := i%8 != 7; done != wanted || (err == nil) != wanted {
				t.Errorf("writer %d: %v, notified after the commit: %v", i, err, done)
			}
			committed = append(committed, i)
		})
	}
	group.Wait()
	slices.Sort(notified)
	want(t, "notified once each", len(slices.Compact(notified)), writers*7/8)
	want(t, "writers", len(committed), writers)
	want(t, "documents", len(strings.Fields(e.ids(t))), writers*7/8)
}

func queryRows(t *testing.T, e *database) {
	e.add(t, "a", "b", "c")
	rows := must(e.Query(t.Context(), "SELECT id, version AS second FROM documents"))(t)
	want(t, "columns", must(rows.Columns())(t), []string{"id", "second"})
	want(t, "the first row", rows.Next(), true)
	want(t, "closed early", errors.Join(rows.Close(), rows.Close()), nil)
	want(t, "no row after that", rows.Next(), false)
	// Open rows do not block writers.
	reading, err := e.Query(t.Context(), "SELECT id FROM documents ORDER BY id")
	if err != nil || !reading.Next() {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- add(context.WithoutCancel(t.Context()), e.Engine, "d") }()
	want(t, "a write meanwhile", <-written, nil)
	want(t, "the other rows", len(scanTexts(t, reading)), 2)
	want(t, "documents", e.ids(t), "a b c d")
}

// querySelect tests the bounds of the sandbox. The tests of the engines have the attacks.
func querySelect(t *testing.T, e *database) {
	e.add(t, "a", "b", "c")
	box := store.Sandbox{Tables: []string{"documents"}, MaxRows: 10, MaxBytes: 10_000, Timeout: time.Minute}
	table := must(e.Select(t.Context(), "SELECT id, version FROM documents WHERE id > 'a' ORDER BY id", box))(t)
	want(t, "an answer", table, store.Table{Columns: []string{"id", "version"}, Rows: [][]any{{"b", int64(1)}, {"c", int64(1)}}})
	few := box
	few.MaxRows = 2
	table = must(e.Select(t.Context(), "SELECT id FROM documents ORDER BY id", few))(t)
	want(t, "cut off", table, store.Table{Columns: []string{"id"}, Rows: [][]any{{"a"}, {"b"}}, Truncated: true})
	for _, query := range []string{
		"DELETE FROM documents", "INSERT INTO documents VALUES ('k', 'x', '{}', 1, 1)", "SELECT 1; DELETE FROM documents", "SELECT * FROM tea_identity",
		"DROP TABLE documents", "SELECT", "",
	} {
		_, err := e.Select(t.Context(), query, box)
		want(t, query+" is refused", err != nil, true)
	}
	want(t, "documents", e.ids(t), "a b c")
}

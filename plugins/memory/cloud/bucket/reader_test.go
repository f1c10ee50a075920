package bucket

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
)

// A memory that is only read sees what others have written before each call, and
// never takes the lease or writes an object.
func TestReadOnlyTakesNoLease(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *objtest.Server) {
		reading := config(t, s, prefixOf(t), t.TempDir(), nil)
		reading.ReadOnly = "settings.memory.read_only is set"
		readers := []*store.Stores{openStores(t, reading), openStores(t, reading)}
		_, err := readers[0].LongTerm.Retrieve(t.Context(), "", "a")
		if e := tea.AsError(err); e == nil || e.Type != tea.NotFound || errors.Is(err, store.ErrNotFound) {
			t.Errorf("a memory that does not exist: %v", err)
		}
		b := readers[0].Tables.(tableStore).s.bucket
		headOf := func() head {
			t.Helper()
			h, _, err := readHead(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		writer := openStores(t, config(t, s, prefixOf(t), reading.Dir, map[string]any{"idle_seconds": 600}))
		for n := range 4 {
			value := fmt.Sprint(n)
			set(t, writer, "a", value)
			insertNumber(t, writer, n)
			before := headOf()
			for _, reader := range readers {
				if got := get(t, reader, "a"); got != value {
					t.Errorf("a = %q, want %q", got, value)
				}
				found, err := reader.LongTerm.Search(t.Context(), store.Search{Text: value, Limit: 5})
				if err != nil || len(found.Found) != 1 {
					t.Errorf("search: %v, %v", found, err)
				}
				if got := tableRows(t, reader, "SELECT max(id) AS n FROM rows_of_all"); got[0] != fmt.Sprintf(`{"n":%d}`, n) {
					t.Errorf("rows: %v", got)
				}
			}
			after := headOf()
			if before.Beat, after.Beat = 0, 0; after.Term != 1 || after.Wanted != "" || cmp.Diff(before, after) != "" { // the holder renews its lease
				t.Errorf("the head has changed: %+v", after)
			}
		}
		for what, err := range map[string]error{
			"store":  second(readers[0].LongTerm.Store(t.Context(), store.Entry{Key: "b", Value: json.RawMessage("1")})),
			"delete": second(readers[0].LongTerm.Delete(t.Context(), "", "a")),
			"insert": second(readers[0].Tables.Insert(t.Context(), "rows_of_all", []store.TableRow{{"id": json.RawMessage("9")}}, store.RowFail, store.TableCall{})),
			"reset":  readers[0].Reset(t.Context()),
		} {
			if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied || !errors.Is(err, store.ErrReadOnly) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := writer.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		set(t, writer, "b", "1")
		if a, b := get(t, readers[1], "a"), get(t, readers[1], "b"); a != "" || b != "1" {
			t.Errorf("after a reset: a = %q, b = %q", a, b)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// insertNumber inserts a row with a number into a table, which it creates.
func insertNumber(t *testing.T, s *store.Stores, n int) {
	t.Helper()
	createTable(t, s, "rows_of_all", `{"id": "int"}`, "id")
	insertRows(t, s, "rows_of_all", fmt.Sprintf(`[{"id": %d}]`, n))
}

// A large value is read again if it was replaced, and its blob removed, after the
// reader has fetched the state that names it.
func TestAReaderMeetsASweep(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	writer := openStores(t, config(t, s, prefixOf(t), t.TempDir(), map[string]any{"idle_seconds": 600}))
	large := func(of string) string { return strings.Repeat(of, 5000) }
	set(t, writer, "a", large("old"))
	reading := config(t, s, prefixOf(t), t.TempDir(), nil)
	reading.ReadOnly = "settings.memory.read_only is set"
	reader := openStores(t, reading).Tables.(tableStore).s
	calls := 0
	var got store.Row
	err := reader.readPublished(t.Context(), func(x *holder) error {
		if calls++; calls == 1 {
			set(t, writer, "a", large("new"))
			if _, err := writer.LongTerm.Sweep(t.Context(), time.Now()); err != nil {
				return err
			}
		}
		rows, err := x.driver.Get(t.Context(), store.RowQuery{Feed: store.EntryFeed, Names: []store.RecordName{{Feed: store.EntryFeed, Key: "a"}}})
		if err != nil {
			return err
		}
		got, err = rows[0].Load(t.Context())
		return err
	})
	if err != nil || calls != 2 || string(got.Body) != `"`+large("new")+`"` {
		t.Errorf("%d calls, %.20s, %v; want the new value after two", calls, got.Body, err)
	}
}

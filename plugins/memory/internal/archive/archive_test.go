package archive_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/archive"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// records is a store of which only the entries work.
type records struct {
	store.Replica
	all  map[store.RecordName]store.Record
	puts int // how many calls of Put succeed; below 0: all
}

var errFull = errors.New("full")

func (r *records) Identity(context.Context) (string, error) { return "x", nil }

func (r *records) Changes(_ context.Context, q store.ChangeQuery) (store.ChangePage, error) {
	page := store.ChangePage{Last: q.After}
	if q.Feed != store.EntryFeed {
		return page, nil
	}
	for n := q.After; n < int64(len(r.all)) && len(page.Records) < 10; n++ {
		record := r.all[storetest.EntryRecord("", fmt.Sprint(n), "1").RecordName]
		page.Records, page.Last = append(page.Records, record), n+1
	}
	page.More = page.Last < int64(len(r.all))
	return page, nil
}

func (r *records) Records(_ context.Context, names ...store.RecordName) ([]store.Record, error) {
	found := make([]store.Record, len(names))
	for i, name := range names {
		record, ok := r.all[name]
		if !ok {
			record = store.Record{RecordName: name, Deleted: true}
		}
		found[i] = record
	}
	return found, nil
}

func (r *records) Put(_ context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	if r.puts == 0 {
		return nil, errFull
	}
	r.puts--
	for _, w := range writes {
		if r.all[w.RecordName] = w.Record; w.Deleted {
			delete(r.all, w.RecordName)
		}
	}
	return make([]store.PutResult, len(writes)), nil
}

// TestAnInterruptedImportContinues lets the import fail after each page.
func TestAnInterruptedImportContinues(t *testing.T) {
	t.Parallel()
	from := &records{all: map[store.RecordName]store.Record{}}
	for i := range 95 {
		r := storetest.EntryRecord("", fmt.Sprint(i), fmt.Sprint(i))
		from.all[r.RecordName] = r
	}
	var b bytes.Buffer
	if _, err := archive.Export(t.Context(), &b, from, nil); err != nil {
		t.Fatal(err)
	}
	to := &records{all: map[store.RecordName]store.Record{}}
	written := int64(0)
	for round := 0; ; round++ {
		if to.puts = 1; round > 20 {
			t.Fatal("the import does not end")
		}
		r, err := archive.Import(t.Context(), bytes.NewReader(b.Bytes()), to, archive.Options{Replace: true})
		if err == nil {
			if !r.Resumed {
				t.Error("the import was not resumed")
			}
			break
		}
		if !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		found := false
		for name := range to.all {
			found = found || name.Space == archive.ImportKind
		}
		if !found {
			t.Fatalf("nothing says that the import is not complete after %d calls", round+1)
		}
		written = int64(len(to.all)) - 1
	}
	if written != 95 || len(to.all) != 95 {
		t.Errorf("%d records, %d in the end, want 95", written, len(to.all))
	}
}

// TestARestoreNeedsAnEmptyMemory is also about what interrupted imports leave.
func TestARestoreNeedsAnEmptyMemory(t *testing.T) {
	t.Parallel()
	archiveOf := func(keys ...string) *bytes.Reader {
		from := &records{all: map[store.RecordName]store.Record{}}
		for i, key := range keys {
			r := storetest.EntryRecord("", fmt.Sprint(i), fmt.Sprintf("%q", key))
			from.all[r.RecordName] = r
		}
		var b bytes.Buffer
		if _, err := archive.Export(t.Context(), &b, from, nil); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b.Bytes())
	}
	errNotEmpty := errors.New("not empty")
	restore := archive.Options{Replace: true, Empty: func(context.Context) error { return errNotEmpty }}
	fresh := archive.Options{Replace: true, Empty: func(context.Context) error { return nil }}
	first, second := archiveOf("a"), archiveOf("b")
	run := func(to *records, puts int, from *bytes.Reader, o archive.Options, want error) {
		t.Helper()
		to.puts = puts
		if _, err := from.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Import(t.Context(), from, to, o); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	to := &records{all: map[store.RecordName]store.Record{}}
	run(to, -1, first, restore, errNotEmpty)
	run(to, 1, first, fresh, errFull)
	run(to, -1, second, restore, errNotEmpty) // another archive
	run(to, -1, first, restore, nil)          // it is continued
	to = &records{all: map[store.RecordName]store.Record{}}
	run(to, 1, first, archive.Options{Replace: true}, errFull)
	run(to, -1, first, restore, errNotEmpty) // that was not a restore
}

// rowsOf is a table whose changes are identified by keys.
type rowsOf struct {
	done map[string]bool
	rows int
}

func (*rowsOf) Tables(context.Context) ([]archive.Table, error) {
	return []archive.Table{{Name: "t", Schema: []byte("[]")}}, nil
}

func (*rowsOf) Rows(_ context.Context, _ archive.Table, page func([]json.RawMessage) error) error {
	return page([]json.RawMessage{[]byte(`{"a":1}`)})
}

func (*rowsOf) Create(context.Context, archive.Table) error { return nil }

func (r *rowsOf) Insert(_ context.Context, _ string, rows []json.RawMessage, _ bool, key string) error {
	if !r.done[key] {
		r.rows += len(rows)
	}
	r.done[key] = true
	return nil
}

// TestASecondImportWritesRowsAgain imports an archive, loses its rows, and imports it
// again. A continued import writes them once.
func TestASecondImportWritesRowsAgain(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if _, err := archive.Export(t.Context(), &b, &records{all: map[store.RecordName]store.Record{}}, &rowsOf{}); err != nil {
		t.Fatal(err)
	}
	to, table := &records{all: map[store.RecordName]store.Record{}}, &rowsOf{done: map[string]bool{}}
	run := func(puts int, want error) {
		t.Helper()
		to.puts = puts
		if _, err := archive.Import(t.Context(), bytes.NewReader(b.Bytes()), to, archive.Options{Tables: table, Replace: true}); !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
	}
	run(1, errFull) // at the end
	run(-1, nil)
	if table.rows != 1 {
		t.Errorf("%d rows, want 1", table.rows)
	}
	run(-1, nil)
	if table.rows != 2 {
		t.Error("the second import has written no rows")
	}
}

// refusingTable is a table that cannot store the row 3.
type refusingTable struct{ rowsOf }

func (*refusingTable) Tables(context.Context) ([]archive.Table, error) {
	return []archive.Table{{Name: "t", Schema: []byte("[]"), PrimaryKey: []string{"a"}}}, nil
}

func (*refusingTable) Rows(_ context.Context, _ archive.Table, page func([]json.RawMessage) error) error {
	return page([]json.RawMessage{[]byte(`{"a":1}`), []byte(`{"a":2}`), []byte(`{"a":3,"b":4}`), []byte(`{"a":5}`), []byte(`{"a":6}`)})
}

func (f *refusingTable) Insert(ctx context.Context, table string, rows []json.RawMessage, replace bool, key string) error {
	for n, row := range rows {
		if strings.Contains(string(row), "3") {
			return tea.Errorf(tea.ValidationError, "row %d: it has a 3", n)
		}
	}
	return f.rowsOf.Insert(ctx, table, rows, replace, key)
}

// TestOneRowThatCannotBeStoredStopsNoImport imports it twice: nothing is written
// twice.
func TestOneRowThatCannotBeStoredStopsNoImport(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	table := &refusingTable{rowsOf{done: map[string]bool{}}}
	if _, err := archive.Export(t.Context(), &b, &records{all: map[store.RecordName]store.Record{}}, table); err != nil {
		t.Fatal(err)
	}
	to := &records{all: map[store.RecordName]store.Record{}, puts: 1}
	if _, err := archive.Import(t.Context(), bytes.NewReader(b.Bytes()), to, archive.Options{Tables: table, Replace: true}); !errors.Is(err, errFull) {
		t.Fatal(err)
	}
	to.puts = -1
	got, err := archive.Import(t.Context(), bytes.NewReader(b.Bytes()), to, archive.Options{Tables: table, Replace: true})
	if err != nil || table.rows != 4 {
		t.Errorf("%d rows, %v; want 4", table.rows, err)
	}
	if want := []string{"table t, row [3]: it has a 3"}; !slices.Equal(got.Refused, want) {
		t.Errorf("refused: %q, want %q", got.Refused, want)
	}
}

// TestAnExportLeavesOutWhatCannotBeRead has a file without its content.
func TestAnExportLeavesOutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	from := &records{all: map[store.RecordName]store.Record{}}
	for i := range 3 {
		r := storetest.EntryRecord("", fmt.Sprint(i), "1")
		if i == 1 {
			r.Content = strings.Repeat("0", 64)
		}
		from.all[r.RecordName] = r
	}
	s, err := archive.Export(t.Context(), io.Discard, from, nil)
	if err != nil || s.Damaged != 1 || s.Records["ltm"] != 2 {
		t.Errorf("%+v %v", s, err)
	}
}

func (r *records) Content(_ context.Context, hash string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("content %s: %w", hash, store.ErrNotFound)
}

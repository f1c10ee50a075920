package firestore

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// A device has read a table before the documents of its deleted rows go.
func TestDeletedRowsAreForgotten(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	db := d.driver(t, config(d.url(t)))
	one, other := db.stores(config("")), d.open(t, nil)
	if _, err := one.Tables.Create(t.Context(), store.NewTable{Name: "t", Schema: []byte(`{"id": "int"}`), PrimaryKey: []string{"id"}}); err != nil {
		t.Fatal(err)
	}
	for id := range 3 {
		if _, err := one.Tables.Insert(t.Context(), "t", []store.TableRow{{"id": fmt.Append(nil, id)}}, store.RowFail, store.TableCall{}); err != nil {
			t.Fatal(err)
		}
	}
	rows := func(s *store.Stores) string {
		a, err := s.Tables.Query(t.Context(), store.TableQuery{SQL: "SELECT id FROM t ORDER BY id", MaxRows: 10})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(a.Rows)
	}
	if got, want := rows(other), "[map[id:0] map[id:1] map[id:2]]"; got != want {
		t.Errorf("rows: %s, want %s", got, want)
	}
	remove := func(id string) {
		if _, err := one.Tables.Delete(t.Context(), "t", store.RowSelection{Keys: raws(id)}, store.TableCall{}); err != nil {
			t.Fatal(err)
		}
	}
	remove("0")
	// As after many deletions.
	head := rowStore{d: db}.table("t")
	found, err := db.get(t.Context(), nil, head)
	if err != nil {
		t.Fatal(err)
	}
	state := toTableState(found[head])
	state.gone = keepGone
	if err := db.commit(t.Context(), []write{state.write(head, found[head].UpdateTime)}); err != nil {
		t.Fatal(err)
	}
	remove("2")
	if n, err := db.count(t.Context(), head, structured{From: []from{{rowsName}}}); err != nil || n != 1 {
		t.Errorf("%d documents, %v; want that of one row", n, err)
	}
	for name, s := range map[string]*store.Stores{"one": one, "the other": other} {
		if got, want := rows(s), "[map[id:1]]"; got != want {
			t.Errorf("%s device: %s, want %s", name, got, want)
		}
	}
	entries, _, err := one.Inspect(t.Context())
	if err != nil || entries["rows"] != 1 {
		t.Errorf("inspect: %v, %v", entries, err)
	}
	if err := one.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := db.count(t.Context(), head, structured{From: []from{{rowsName}}}); err != nil || n != 0 {
		t.Errorf("%d rows after a reset, %v", n, err)
	}
}

func raws(text string) []json.RawMessage { return []json.RawMessage{json.RawMessage(text)} }

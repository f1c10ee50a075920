package tabular

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// bank is a table of accounts in groups: each change sets all rows of its group
// to the next number, so that a reader finds each group in one state, and never
// one from before what he has seen.
type bank struct {
	*device
	groups, each int
}

func (b bank) open(t *testing.T) {
	t.Helper()
	b.make(t, "acc", `{"id": "int", "grp": "int", "n": "int", "pad": "string"}`, "id")
	var rows []string
	for i := range b.groups * b.each {
		rows = append(rows, fmt.Sprintf(`{"id": %d, "grp": %d, "n": 0, "pad": "%s"}`, i, i%b.groups, strings.Repeat("x", 40)))
	}
	b.insert(t, "acc", "["+strings.Join(rows, ",")+"]", store.RowFail)
}

// watch reads some times.
func (b bank) watch(t *testing.T, times int) {
	seen := make([]int64, b.groups)
	for range times {
		a, err := b.Query(t.Context(), store.TableQuery{SQL: "SELECT grp, count(*) AS rows, min(n) AS least, max(n) AS most, sum(n) AS total FROM acc WHERE grp >= 0 GROUP BY grp ORDER BY grp"})
		if err != nil {
			t.Error(err)
			return
		}
		if len(a.Rows) != b.groups {
			t.Errorf("%d groups: %v", len(a.Rows), a.Rows)
			return
		}
		for g, row := range a.Rows {
			most := row["most"].(int64)
			if row["rows"] != int64(b.each) || row["least"] != most || row["total"] != most*int64(b.each) {
				t.Errorf("a reader saw half of a change: %v", row)
				return
			}
			if most < seen[g] {
				t.Errorf("a reader saw %d in group %d, after %d", most, g, seen[g])
				return
			}
			seen[g] = most
		}
	}
}

// write sets a group's rows round after round, and adds its own row.
func (b bank) write(t *testing.T, group, rounds int) {
	var keys []json.RawMessage
	for i := group; i < b.groups*b.each; i += b.groups {
		keys = append(keys, json.RawMessage(fmt.Sprint(i)))
	}
	for n := 1; n <= rounds; n++ {
		set := json.RawMessage(fmt.Sprint(n))
		var err error
		if n%2 == 0 {
			_, err = b.Update(t.Context(), "acc", store.RowSelection{Where: store.TableRow{"grp": json.RawMessage(fmt.Sprint(group))}}, store.TableRow{"n": set}, store.TableCall{})
		} else {
			rows := make([]store.TableRow, len(keys))
			for i, key := range keys {
				rows[i] = store.TableRow{"id": key, "n": set}
			}
			_, err = b.UpdateRows(t.Context(), "acc", rows, store.TableCall{})
		}
		if err != nil {
			t.Error(err)
		}
		id := 1000 + group*rounds + n
		if _, err := b.Insert(t.Context(), "acc", rowsOf(t, fmt.Sprintf(`[{"id": %d, "grp": -1}]`, id)), store.RowFail, store.TableCall{}); err != nil {
			t.Error(err)
		}
		a, err := b.Query(t.Context(), store.TableQuery{SQL: "SELECT count(*) AS n FROM acc WHERE id = ?", Args: []any{int64(id)}})
		if err != nil || a.Rows[0]["n"] != int64(1) {
			t.Errorf("row %d is not there after it was inserted: %v, %v", id, a.Rows, err)
		}
	}
}

func TestWritersReadersAndConsolidationTogether(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		const writers, readers, rounds, reads, merges = 8, 8, 3, 10, 5
		b := bank{d, writers, 5}
		b.open(t)
		var all sync.WaitGroup
		for range readers {
			all.Go(func() { b.watch(t, reads) })
		}
		all.Go(func() {
			for range merges {
				if _, err := d.Consolidate(t.Context(), "acc"); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for w := range writers {
			all.Go(func() { b.write(t, w, rounds) })
		}
		all.Wait()
		final := []string{fmt.Sprintf("%d|%d|%d", writers*5+writers*rounds, rounds, rounds)}
		query := "SELECT count(*), min(n), max(n) FROM acc"
		want(t, "at the end", d.read(t, query), final)
		d = d.reopen(t)
		if err := d.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, "after a restart", d.read(t, query), final)
		files, err := d.cat.FilesIn(t.Context(), nil, "acc")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "files", d.files(t), len(files))
	})
}

func TestManyMakeOneTable(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		var group sync.WaitGroup
		var made atomic.Int64
		for range 6 {
			group.Go(func() {
				created, err := d.Create(t.Context(), store.NewTable{Name: "x", Schema: json.RawMessage(`{"a": "int"}`)})
				if err != nil {
					t.Error(err)
				}
				if created {
					made.Add(1)
				}
			})
		}
		group.Wait()
		want(t, "created", made.Load(), 1)
	})
}

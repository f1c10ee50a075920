package tabular

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// TestTheTableIsWhatItsChangesSay compares a table with a map after changes of
// all kinds, in rows and files, merged in part and as a whole.
func TestTheTableIsWhatItsChangesSay(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers() {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			const keys, steps = 12, 60
			d := open(t, driver, t.TempDir(), func(o *Options) { o.MaxFiles, o.InlineBytes = 3, 60 })
			d.make(t, "v", `[{"name": "id", "type": "int"}, {"name": "n", "type": "int"}]`, "id")
			random := rand.New(rand.NewPCG(7, 7))
			model := map[int]int{}
			for step := range steps {
				id, n := random.IntN(keys), 1000+step
				switch random.IntN(6) {
				case 0, 1:
					rows := []string{}
					for i := range 1 + random.IntN(4) {
						rows = append(rows, fmt.Sprintf(`{"id": %d, "n": %d}`, (id+i)%keys, n))
						model[(id+i)%keys] = n
					}
					d.insert(t, "v", "["+strings.Join(rows, ",")+"]", store.RowReplace)
				case 2:
					if _, err := d.UpdateRows(t.Context(), "v", rowsOf(t, fmt.Sprintf(`[{"id": %d, "n": %d}]`, id, n)), store.TableCall{}); err != nil {
						t.Fatal(err)
					}
					if _, there := model[id]; there {
						model[id] = n
					}
				case 3, 4:
					if _, err := d.Delete(t.Context(), "v", store.RowSelection{Keys: []json.RawMessage{json.RawMessage(fmt.Sprint(id))}}, store.TableCall{}); err != nil {
						t.Fatal(err)
					}
					delete(model, id)
				case 5:
					if _, err := d.Consolidate(t.Context(), "v"); err != nil {
						t.Fatal(err)
					}
				}
				expected := []string{}
				for id, n := range model {
					expected = append(expected, fmt.Sprintf("%d|%d", id, n))
				}
				got := d.read(t, "SELECT id, n FROM v")
				slices.Sort(expected)
				slices.Sort(got)
				want(t, fmt.Sprint("step ", step), got, expected)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// TestAMergeLeavesWhatCameMeanwhile changes the table while a consolidation
// writes its file.
func TestAMergeLeavesWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers() {
		if driver.Dialect() != store.DuckDB {
			continue // SQLite consolidates in one transaction
		}
		for _, all := range []bool{true, false} {
			d := open(t, driver, t.TempDir())
			d.make(t, "sensors", sensors, "id")
			d.insert(t, "sensors", many(0, 100), store.RowFail)
			if _, err := d.Consolidate(t.Context(), "sensors"); err != nil {
				t.Fatal(err)
			}
			d.insert(t, "sensors", many(50, 100), store.RowReplace)
			meanwhile := func() {
				for _, keys := range [][]json.RawMessage{{json.RawMessage("3"), json.RawMessage("60")}, {json.RawMessage("120")}} {
					if _, err := d.Delete(t.Context(), "sensors", store.RowSelection{Keys: keys}, store.TableCall{}); err != nil {
						t.Error(err)
					}
				}
				d.insert(t, "sensors", `[{"id": 120, "value": -1}, {"id": 500, "value": -1}]`, store.RowFail)
				d.insert(t, "sensors", many(130, 100), store.RowReplace)
			}
			d.reached = func(step string) {
				if step == "merged" {
					d.reached = func(string) {}
					meanwhile()
				}
			}
			tab, err := d.find(t.Context(), "sensors")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.merge(t.Context(), tab, all); err != nil {
				t.Fatal(err)
			}
			after := []string{"229|0|500|-1.0|1"}
			query := "SELECT count(*), min(id), max(id), min(value), count(CASE WHEN id = 120 THEN 1 END) FROM sensors"
			want(t, "rows", strings.ReplaceAll(d.read(t, query)[0], "-1|", "-1.0|"), after[0])
			if _, err := d.Consolidate(t.Context(), "sensors"); err != nil {
				t.Fatal(err)
			}
			want(t, "rows, consolidated", strings.ReplaceAll(d.read(t, query)[0], "-1|", "-1.0|"), after[0])
		}
	}
}

func TestFilesOfOthersStay(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "sensors", sensors, "id")
		d.insert(t, "sensors", many(0, 100), store.RowFail)
		folder := filepath.Join(d.dir, "tables", "sensors")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		left := strings.Repeat("a", 26) + ".parquet"
		for _, name := range []string{"notes.txt", "own.parquet", left, left + ".unfinished"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := d.files(t)
		d = d.reopen(t)
		if err := d.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone := 2
		if d.dialect() == store.SQLite {
			gone = 0 // it has no files there
		}
		want(t, "files", d.files(t), before-gone)
		want(t, "rows", d.read(t, "SELECT count(*) FROM sensors"), []string{"100"})
	})
}

func TestACallIsKnownAgain(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "events", `{"text": "string"}`)
		insert := func(key, hash, text string) store.TableResult {
			t.Helper()
			r, err := d.Insert(t.Context(), "events", rowsOf(t, fmt.Sprintf(`[{"text": %q}]`, text)), store.RowFail, store.TableCall{Key: key, Hash: hash})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		first := insert("k", "h", "a")
		want(t, "again", insert("k", "h", "a"), first)
		d = d.reopen(t)
		want(t, "after a restart", insert("k", "h", "a"), first)
		insert("k", "other", "b")
		insert("", "h", "c")
		insert("", "h", "c")
		want(t, "rows", d.read(t, "SELECT text FROM events ORDER BY text"), []string{"a", "b", "c", "c"})
		changes := make([]store.Change, keptCalls+5)
		for i := range changes {
			changes[i] = store.Change{Kind: callKind, ID: fmt.Sprint("n", i), Body: json.RawMessage(`{}`)}
		}
		if err := d.o.Documents.Apply(t.Context(), changes...); err != nil {
			t.Fatal(err)
		}
		if err := d.forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, err := d.o.Documents.Count(t.Context(), store.DocumentQuery{Kind: callKind})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "kept", n, keptCalls)
		k, err := d.done(t.Context(), store.TableCall{Key: "n5"})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "the oldest went", []any{k.version, k.same}, []any{int64(1), true})
	})
}

// copies are copies of a database that were changed apart.
type copies struct{ base string }

func (c copies) open(t *testing.T) *device {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(c.base)); err != nil {
		t.Fatal(err)
	}
	return open(t, sqlite.Driver{}, dir)
}

// A merge that was interrupted, and one of a copy in which another one was merged,
// add no row twice.
func TestCopiesAreMergedOnce(t *testing.T) {
	t.Parallel()
	base := open(t, sqlite.Driver{}, t.TempDir())
	base.make(t, "events", `{"text": "string"}`)
	base.insert(t, "events", `[{"text": "a"}]`, store.RowFail)
	base.close()
	c := copies{base.dir}
	lost, unpublished, here := c.open(t), c.open(t), c.open(t)
	var rows []string
	for i := range 2*copied + 10 {
		rows = append(rows, fmt.Sprintf(`{"text": "row %d"}`, i))
	}
	lost.insert(t, "events", "["+strings.Join(rows, ",")+"]", store.RowFail)
	here.insert(t, "events", `[{"text": "b"}]`, store.RowFail)
	mark := func(string) int64 { return 1 }
	for _, m := range []struct {
		to, from *device
		id       string
	}{{unpublished, lost, "aside-3"}, {here, lost, "aside-3"}, {here, unpublished, "aside-5"}, {here, lost, "aside-3"}} {
		if _, kept, err := m.to.MergeCopy(t.Context(), m.from.Tables, m.id, mark); err != nil {
			t.Fatal(kept, err)
		}
	}
	want(t, "rows", here.read(t, "SELECT count(*), count(DISTINCT text) FROM events"), []string{fmt.Sprintf("%d|%[1]d", len(rows)+2)})
}

// A table that another device has created with another definition does not stop a
// merge.
func TestACopyWithAnotherDefinitionIsMerged(t *testing.T) {
	t.Parallel()
	base := open(t, sqlite.Driver{}, t.TempDir())
	base.close()
	c := copies{base.dir}
	lost, here := c.open(t), c.open(t)
	here.make(t, "orders", `{"id": "int"}`, "id")
	here.insert(t, "orders", `[{"id": 1}]`, store.RowFail)
	lost.make(t, "orders", `{"id": "string"}`, "id")
	lost.insert(t, "orders", `[{"id": "x"}]`, store.RowFail)
	lost.make(t, "others", `{"id": "int"}`, "id")
	lost.insert(t, "others", `[{"id": 7}]`, store.RowFail)
	for range 2 {
		if _, _, err := here.MergeCopy(t.Context(), lost.Tables, "aside-3", func(string) int64 { return 0 }); err != nil {
			t.Fatal(err)
		}
	}
	for sql, row := range map[string]string{"SELECT id FROM orders": "1", "SELECT id FROM orders_2": "x", "SELECT id FROM others": "7"} {
		want(t, sql, here.read(t, sql), []string{row})
	}
}

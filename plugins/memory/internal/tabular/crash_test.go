package tabular

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// stopped are copies of a folder, each as it was at a step: what a process
// that is killed there leaves.
type stopped struct {
	t     *testing.T
	d     *device
	at    []string
	steps []string
}

func (c *stopped) watch() {
	c.d.reached = func(step string) {
		dir := filepath.Join(c.t.TempDir(), fmt.Sprint(len(c.at)))
		if err := os.CopyFS(dir, os.DirFS(c.d.dir)); err != nil {
			c.t.Error(err)
		}
		c.at, c.steps = append(c.at, dir), append(c.steps, step)
	}
}

// visit opens each copy: the rows are those before or after the change, no
// file is there that no row names, and the table can be written.
func (c *stopped) visit(before, after []string) {
	c.t.Helper()
	if len(c.at) == 0 {
		c.t.Error("no step was reached")
	}
	for i, dir := range c.at {
		d := open(c.t, c.d.driver, dir)
		if _, _, err := d.readable(c.t.Context(), nil); err != nil {
			c.t.Errorf("at %q: %v", c.steps[i], err)
			continue
		}
		got := d.read(c.t, "SELECT count(*), min(id), max(id) FROM sensors")
		if got[0] != before[0] && got[0] != after[0] {
			c.t.Errorf("at %q: %v; want %v or %v", c.steps[i], got, before, after)
		}
		files, err := d.cat.FilesIn(c.t.Context(), nil, "sensors")
		if err != nil {
			c.t.Fatal(err)
		}
		want(c.t, "files at "+c.steps[i], d.files(c.t), len(files))
		d.insert(c.t, "sensors", many(100_000, 100), store.RowFail)
		d.insert(c.t, "sensors", `[{"id": 200000}]`, store.RowFail)
		again := d.read(c.t, "SELECT count(*) FROM sensors WHERE id >= 100000")
		want(c.t, "new rows", again, []string{"101"})
		d.close()
	}
}

func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers() {
		if driver.Dialect() != store.DuckDB {
			continue // SQLite has one step: its transaction
		}
		start := func(t *testing.T) *stopped {
			t.Parallel()
			d := open(t, driver, t.TempDir())
			d.make(t, "sensors", sensors, "id")
			d.insert(t, "sensors", many(0, 100), store.RowFail)
			d.insert(t, "sensors", `[{"id": 5000}]`, store.RowFail)
			c := &stopped{t: t, d: d}
			c.watch()
			return c
		}
		before := []string{"101|0|5000"}
		t.Run("insert", func(t *testing.T) {
			c := start(t)
			c.d.insert(t, "sensors", many(1000, 200), store.RowFail)
			want(t, "steps", c.steps, []string{"rows appended", "file written", "file renamed", "file in the catalog"})
			c.visit(before, []string{"301|0|5000"})
		})
		t.Run("delete", func(t *testing.T) {
			c := start(t)
			c.d.o.InlineBytes = 1
			if _, err := c.d.Delete(t.Context(), "sensors", store.RowSelection{Where: store.TableRow{"site": json.RawMessage(`"site 0"`)}}, store.TableCall{}); err != nil {
				t.Fatal(err)
			}
			c.visit(before, []string{"91|1|5000"})
		})
		t.Run("consolidate", func(t *testing.T) {
			c := start(t)
			if _, err := c.d.Delete(t.Context(), "sensors", store.RowSelection{Keys: []json.RawMessage{json.RawMessage("7")}}, store.TableCall{}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.d.Consolidate(t.Context(), "sensors"); err != nil {
				t.Fatal(err)
			}
			want(t, "steps", c.steps, []string{"file written", "file renamed", "merged", "swapping", "swapped"})
			c.visit([]string{"100|0|5000"}, []string{"100|0|5000"})
		})
	}
}

func TestAFailedWriteLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "sensors", sensors, "id")
		d.insert(t, "sensors", many(0, 100), store.RowFail)
		files := d.files(t)
		if _, err := d.Insert(t.Context(), "sensors", rowsOf(t, many(99, 500)), store.RowFail, store.TableCall{}); err == nil {
			t.Error("a key that is there was inserted")
		}
		want(t, "rows", d.read(t, "SELECT count(*) FROM sensors"), []string{"100"})
		if d.dialect() == store.DuckDB {
			if err := os.RemoveAll(filepath.Join(d.dir, "tables", "sensors")); err != nil {
				t.Fatal(err)
			}
			d = d.reopen(t)
			d.make(t, "other", `{"a": "int"}`)
			d.insert(t, "other", `[{"a": 1}]`, store.RowFail)
			_, err := d.Insert(t.Context(), "sensors", rowsOf(t, many(500, 1)), store.RowFail, store.TableCall{})
			fails(t, "a file that is gone", err, "internal_error", "has lost a file")
			for _, names := range [][]string{nil, {"sensors"}} {
				_, err = d.Query(t.Context(), store.TableQuery{SQL: "SELECT count(*) FROM Sensors", Tables: names, MaxRows: 10, MaxBytes: 1000, Timeout: time.Minute})
				fails(t, "a query of it", err, "internal_error", "has lost a file")
			}
			return
		}
		want(t, "files", d.files(t), files)
	})
}

// TestADamagedFileOfATableEndsNoOther is about files that a disk has cut or
// overwritten, before a start and while the table is open.
func TestADamagedFileOfATableEndsNoOther(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		if d.dialect() != store.DuckDB {
			t.Skip("tables have no files")
		}
		d.make(t, "sensors", sensors, "id")
		d.insert(t, "sensors", many(0, 500), store.RowFail)
		d.make(t, "other", `{"a": "int"}`)
		d.insert(t, "other", `[{"a": 1}]`, store.RowFail)
		files, err := filepath.Glob(filepath.Join(d.dir, "tables", "sensors", "*.parquet"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		whole, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		overwritten := []byte(strings.Repeat("x", len(whole)))
		check := func(how string) {
			t.Helper()
			_, err := d.Query(t.Context(), store.TableQuery{SQL: "SELECT sum(id) FROM sensors", MaxRows: 10, MaxBytes: 1000, Timeout: time.Minute})
			fails(t, how, err, "internal_error", "damaged")
			want(t, how+": the other one", d.read(t, "SELECT a FROM other"), []string{"1"})
		}
		for how, content := range map[string][]byte{"cut": whole[:len(whole)/2], "empty": nil} {
			if err := os.WriteFile(files[0], content, 0o600); err != nil {
				t.Fatal(err)
			}
			check(how + " while it is open")
		}
		for how, content := range map[string][]byte{"cut": whole[:len(whole)/2], "empty": nil, "overwritten": overwritten} {
			if err := os.WriteFile(files[0], content, 0o600); err != nil {
				t.Fatal(err)
			}
			d = d.reopen(t)
			check(how)
			d.insert(t, "other", `[]`, store.RowFail)
			_, err := d.Insert(t.Context(), "sensors", rowsOf(t, many(500, 1)), store.RowFail, store.TableCall{})
			fails(t, how+": an insert", err, "internal_error", "damaged")
		}
		if err := os.WriteFile(files[0], whole, 0o600); err != nil {
			t.Fatal(err)
		}
		d = d.reopen(t)
		want(t, "restored", d.read(t, "SELECT count(*) FROM sensors"), []string{"500"})
	})
}

// TestADamagedRowOfTheCatalogEndsNoOtherTable is about rows of a table and of its
// files. The files stay: the row may be restored.
func TestADamagedRowOfTheCatalogEndsNoOtherTable(t *testing.T) {
	for _, kind := range []string{"catalog_table", "catalog_file"} {
		t.Run(kind, func(t *testing.T) {
			each(t, func(t *testing.T, d *device) {
				if d.dialect() != store.DuckDB {
					t.Skip("tables have no files")
				}
				d.make(t, "other", `{"a": "int"}`)
				d.insert(t, "other", `[{"a": 1}]`, store.RowFail)
				d.make(t, "sensors", sensors, "id")
				d.insert(t, "sensors", many(0, 500), store.RowFail)
				files := d.files(t)
				err := d.o.Engine.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
					_, err := tx.Exec(ctx, "UPDATE documents SET body = replace(body, '{', 'X') WHERE kind = ? AND id LIKE 'sensors%'", kind)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				d = d.reopen(t)
				want(t, "the other one", d.read(t, "SELECT a FROM other"), []string{"1"})
				_, err = d.Query(t.Context(), store.TableQuery{SQL: "SELECT 1 FROM sensors", Tables: []string{"sensors"}, MaxRows: 10, MaxBytes: 1000, Timeout: time.Minute})
				fails(t, "a query of it", err, "internal_error", "damaged")
				if err := d.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				want(t, "files", d.files(t), files)
			})
		})
	}
}

func TestManyPartsArePutTogetherUnasked(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers() {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			d := open(t, driver, t.TempDir(), func(o *Options) { o.MaxFiles, o.MaxRows, o.InlineBytes = 4, 200, 100 })
			d.make(t, "sensors", sensors, "id")
			for i := range 24 {
				d.insert(t, "sensors", many(i*5, 10), store.RowReplace)
				if n := d.files(t); n > 5 {
					t.Fatalf("%d files after %d inserts", n, i+1)
				}
				if _, err := d.Delete(t.Context(), "sensors", store.RowSelection{Where: store.TableRow{"id": json.RawMessage(fmt.Sprint(i * 5))}}, store.TableCall{}); err != nil {
					t.Fatal(err)
				}
			}
			query := "SELECT count(*), min(id), max(id) FROM sensors"
			want(t, "rows", d.read(t, query), []string{"101|1|124"})
			log := d.read(t, "SELECT count(*) FROM tea_rows_sensors")
			if len(log[0]) > 3 {
				t.Errorf("the log has %s rows", log[0])
			}
			d = d.reopen(t)
			if _, _, err := d.readable(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			want(t, "rows after a restart", d.read(t, query), []string{"101|1|124"})
		})
	}
}

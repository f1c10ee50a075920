package tabular

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// device has the tables of a folder.
type device struct {
	*Tables
	dir    string
	driver engine.Driver
	cat    *catalog.Managed
	close  func()
}

func open(t testing.TB, driver engine.Driver, dir string, options ...func(*Options)) *device {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver})
	if err != nil {
		t.Fatal(err)
	}
	docs := devicetest.Documents(e)
	c := catalog.NewManaged(docs, clock.New())
	o := Options{Engine: e, Documents: docs, Catalog: c, Dir: filepath.Join(dir, "tables")}
	for _, set := range options {
		set(&o)
	}
	d := &device{Tables: New(o), dir: dir, driver: driver, cat: c}
	var once sync.Once
	d.close = func() {
		once.Do(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(d.close)
	return d
}

func (d *device) reopen(t testing.TB) *device {
	t.Helper()
	d.close()
	return open(t, d.driver, d.dir)
}

func drivers() []engine.Driver {
	all := []engine.Driver{sqlite.Driver{}}
	if d, err := duckdb.New(); err == nil {
		all = append(all, d)
	}
	return all
}

// each runs a test on every database of this build.
func each(t *testing.T, test func(t *testing.T, d *device)) {
	t.Helper()
	t.Parallel()
	for _, driver := range drivers() {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			test(t, open(t, driver, t.TempDir()))
		})
	}
}

func (d *device) make(t testing.TB, name, schema string, key ...string) {
	t.Helper()
	if _, err := d.Create(t.Context(), store.NewTable{Name: name, Schema: json.RawMessage(schema), PrimaryKey: key}); err != nil {
		t.Fatal(err)
	}
}

func rowsOf(t testing.TB, text string) []store.TableRow {
	t.Helper()
	var rows []store.TableRow
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func (d *device) insert(t testing.TB, table, rows string, conflict store.RowConflict) store.TableResult {
	t.Helper()
	r, err := d.Insert(t.Context(), table, rowsOf(t, rows), conflict, store.TableCall{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// read is what a query gives, each row as texts between bars.
func (d *device) read(t testing.TB, query string, args ...any) []string {
	t.Helper()
	defer d.readers.begin()()
	rows, err := d.o.Engine.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for rows.Next() {
		cells, dest := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range cells {
			dest[i] = &cells[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(cells))
		for i, c := range cells {
			if texts[i] = c.String; !c.Valid {
				texts[i] = "-"
			}
		}
		found = append(found, strings.Join(texts, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func fails(t *testing.T, what string, err error, kind tea.ErrorType, text string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	if e := tea.AsError(err); e.Type != kind || !strings.Contains(e.Message, text) {
		t.Errorf("%s: %v; want %s with %q", what, err, kind, text)
	}
}

func (d *device) files(t testing.TB) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.dir, "tables", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

const sensors = `[{"name": "id", "type": "int"}, {"name": "site", "type": "string"}, {"name": "value", "type": "float"}]`

// many are n rows of sensors from an id on.
func many(from, n int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id": %d, "site": "site %d", "value": %d.5}`, from+i, (from+i)%10, from+i)
	}
	b.WriteByte(']')
	return b.String()
}

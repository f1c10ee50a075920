package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// each runs a test on every database of this build.
func each(t *testing.T, test func(t *testing.T, open func() *catalog.Catalog)) {
	t.Helper()
	t.Parallel()
	drivers := []engine.Driver{sqlite.Driver{}}
	if d, err := duckdb.New(); err == nil {
		drivers = append(drivers, d)
	}
	for _, driver := range drivers {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "memory")
			var last *engine.Engine
			end := func() {
				if last != nil {
					if err := last.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			t.Cleanup(end)
			test(t, func() *catalog.Catalog {
				t.Helper()
				end()
				var err error
				if last, err = engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver}); err != nil {
					t.Fatal(err)
				}
				return catalog.New(devicetest.Documents(last), clock.New())
			})
		})
	}
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	times := cmpopts.IgnoreFields(catalog.Table{}, "CreatedAt", "UpdatedAt")
	if diff := cmp.Diff(want, got, times, cmpopts.IgnoreFields(catalog.File{}, "TrackedAt"), cmpopts.IgnoreFields(catalog.Snapshot{}, "CreatedAt"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func fails(t *testing.T, what string, err error, kind tea.ErrorType, text string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
	} else if e := tea.AsError(err); e.Type != kind || !strings.Contains(e.Message, text) {
		t.Errorf("%s: %v; want %s with %q", what, err, kind, text)
	}
}

func register(t *testing.T, c *catalog.Catalog, table catalog.Table) bool {
	t.Helper()
	_, created, err := c.Register(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func track(t *testing.T, c *catalog.Catalog, table string, files ...catalog.File) []catalog.Outcome {
	t.Helper()
	return must[[]catalog.Outcome](t)(c.Track(t.Context(), table, files))
}

func names(tables []catalog.Table) (all []string) {
	for _, table := range tables {
		all = append(all, table.Name)
	}
	return all
}

func paths(files []catalog.File) (all []string) {
	for _, f := range files {
		all = append(all, f.Path)
	}
	return all
}

func TestTables(t *testing.T) {
	each(t, func(t *testing.T, open func() *catalog.Catalog) {
		c := open()
		readings := catalog.Table{
			Name: "plant.Readings", Description: "d", Format: "parquet", Location: "s3://b/readings", Schema: json.RawMessage(`{"ts":"timestamp"}`),
			PrimaryKey: []string{"ts"}, PartitionBy: []string{"day"}, Metadata: json.RawMessage(`{"owner":"ann"}`),
		}
		same(t, "created", register(t, c, readings), true)
		same(t, "again", register(t, c, readings), false)
		same(t, "found", must[catalog.Table](t)(c.Table(t.Context(), "PLANT.readings")), readings)
		readings.Format, readings.Metadata = "csv", nil
		same(t, "another case", register(t, c, catalog.Table{Name: "PLANT.Readings", Format: "x"}), false)
		register(t, c, readings)
		c = open()
		same(t, "after a restart", must[catalog.Table](t)(c.Table(t.Context(), "plant.readings")), readings)
		_, err := c.Table(t.Context(), "plant.reading")
		fails(t, "none", err, tea.NotFound, `did you mean "plant.Readings"?`)
		for _, name := range []string{"", "1a", "a b", "a/b", "a@1", "é", strings.Repeat("a", 129), "a\x00"} {
			_, _, err := c.Register(t.Context(), catalog.Table{Name: name})
			fails(t, name, err, tea.ValidationError, "not a valid table name")
		}
		_, _, err = c.Register(t.Context(), catalog.Table{Name: "a", Metadata: json.RawMessage(`[1]`)})
		fails(t, "metadata", err, tea.ValidationError, "metadata must be an object")
	})
}

func TestTablesInPages(t *testing.T) {
	each(t, func(t *testing.T, open func() *catalog.Catalog) {
		c := open()
		for _, name := range []string{"b", "A2", "a1", "C", "a_x", "a10"} {
			register(t, c, catalog.Table{Name: name})
		}
		list := func(q catalog.TableQuery) ([]string, int) {
			t.Helper()
			tables, total, err := c.Tables(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			return names(tables), total
		}
		got, total := list(catalog.TableQuery{})
		same(t, "all", got, []string{"a1", "a10", "A2", "a_x", "b", "C"})
		same(t, "total", total, 6)
		got, total = list(catalog.TableQuery{Prefix: "A", Page: catalog.Page{Limit: 2}})
		same(t, "first page", got, []string{"a1", "a10"})
		same(t, "total of the prefix", total, 4)
		got, total = list(catalog.TableQuery{Prefix: "A", Page: catalog.Page{Limit: 2, After: "a10"}})
		same(t, "second page", got, []string{"A2", "a_x"})
		same(t, "total on the second page", total, 4)
		got, _ = list(catalog.TableQuery{Prefix: "a_"})
		same(t, "no wildcard", got, []string{"a_x"})
		got, _ = list(catalog.TableQuery{Page: catalog.Page{After: "c"}})
		same(t, "after the last", got, []string{})
	})
}

func TestFiles(t *testing.T) {
	each(t, func(t *testing.T, open func() *catalog.Catalog) {
		c := open()
		register(t, c, catalog.Table{Name: "T"})
		register(t, c, catalog.Table{Name: "t2"})
		one := catalog.File{Path: "day=1/a.parquet", ContentHash: "h1", Size: 10, Rows: 3, Format: "parquet", Partition: json.RawMessage(`{"day":1}`), Metadata: json.RawMessage(`{"m":[1]}`)}
		two := catalog.File{Path: "day=2/ü b.parquet", ContentHash: "h2", Partition: json.RawMessage(`{"day":2}`)}
		same(t, "new", track(t, c, "T", one, two), []catalog.Outcome{catalog.Added, catalog.Added})
		three := catalog.File{Path: "c"}
		two.ContentHash = "h3"
		same(t, "again", track(t, c, "t", one, two, three), []catalog.Outcome{catalog.Unchanged, catalog.Changed, catalog.Added})
		same(t, "none", track(t, c, "t"), []catalog.Outcome{})
		track(t, c, "t2", catalog.File{Path: "other"})
		one.Table, two.Table = "t", "t"
		same(t, "one", must[catalog.File](t)(c.File(t.Context(), "T", one.Path)), one)

		c = open()
		list := func(q catalog.FileQuery) ([]string, int) {
			t.Helper()
			files, total, err := c.Files(t.Context(), "t", q)
			if err != nil {
				t.Fatal(err)
			}
			return paths(files), total
		}
		all := []string{"c", one.Path, two.Path}
		got, total := list(catalog.FileQuery{})
		same(t, "all", got, all)
		same(t, "total", total, 3)
		got, total = list(catalog.FileQuery{Prefix: "day=", Page: catalog.Page{Limit: 1}})
		same(t, "first page", got, all[1:2])
		same(t, "total of the prefix", total, 2)
		got, _ = list(catalog.FileQuery{Prefix: "day=", Page: catalog.Page{Limit: 1, After: one.Path}})
		same(t, "second page", got, all[2:])
		got, _ = list(catalog.FileQuery{Partition: map[string]any{"day": int64(2)}})
		same(t, "partition", got, all[2:])
		_, _, err := c.Files(t.Context(), "t", catalog.FileQuery{Partition: map[string]any{"day'": int64(2)}})
		fails(t, "no field", err, tea.ValidationError, "partition")

		same(t, "removed", must[bool](t)(c.Forget(t.Context(), "t", "c")), true)
		same(t, "removed again", must[bool](t)(c.Forget(t.Context(), "t", "c")), false)
		_, err = c.File(t.Context(), "t", "c")
		fails(t, "gone", err, tea.NotFound, `table "T" has no file "c"`)
	})
}

func TestWrongFilesAreRefusedTogether(t *testing.T) {
	each(t, func(t *testing.T, open func() *catalog.Catalog) {
		c := open()
		register(t, c, catalog.Table{Name: "t"})
		good := catalog.File{Path: "good"}
		for text, bad := range map[string]catalog.File{
			"is not a valid path":      {},
			"control characters":       {Path: "a\nb"},
			"appears twice":            {Path: "good"},
			"not be negative":          {Path: "a", Size: -1},
			"partition must be an obj": {Path: "a", Partition: json.RawMessage(`"x"`)},
			"metadata must be an obje": {Path: "a", Metadata: json.RawMessage(`3`)},
		} {
			_, err := c.Track(t.Context(), "t", []catalog.File{good, bad})
			fails(t, text, err, tea.ValidationError, text)
		}
		_, err := c.Track(t.Context(), "tt", []catalog.File{good})
		fails(t, "no table", err, tea.NotFound, `there is no table "tt"`)
		files, _, err := c.Files(t.Context(), "t", catalog.FileQuery{})
		if err != nil || len(files) != 0 {
			t.Errorf("%v, %v", files, err)
		}
	})
}

func TestSnapshotsAndChanges(t *testing.T) {
	each(t, func(t *testing.T, open func() *catalog.Catalog) {
		c := open()
		register(t, c, catalog.Table{Name: "T"})
		register(t, c, catalog.Table{Name: "t_"})
		_, err := c.LatestSnapshot(t.Context(), "t")
		fails(t, "none yet", err, tea.NotFound, "has no snapshot")
		changes := func(q catalog.Compare) catalog.Difference {
			t.Helper()
			return must[catalog.Difference](t)(c.ChangedFiles(t.Context(), "t", q))
		}
		a, b := catalog.FileRef{Path: "a", ContentHash: "1"}, catalog.FileRef{Path: "b", Size: 5}
		track(t, c, "t", catalog.File{Path: "b", Size: 5}, catalog.File{Path: "a", ContentHash: "1"})
		same(t, "without a snapshot", changes(catalog.Compare{}), catalog.Difference{Added: []catalog.FileRef{a, b}})

		snap := func(n catalog.NewSnapshot) catalog.Snapshot {
			t.Helper()
			return must[catalog.Snapshot](t)(c.CreateSnapshot(t.Context(), "T", n))
		}
		first := snap(catalog.NewSnapshot{Description: "first", Metadata: json.RawMessage(`{"by":"me"}`), Call: "k"})
		same(t, "first", first, catalog.Snapshot{ID: "t@000001", Table: "t", Number: 1, Description: "first", Metadata: json.RawMessage(`{"by":"me"}`), Files: []catalog.FileRef{a, b}, Call: "k"})
		same(t, "repeated", snap(catalog.NewSnapshot{Call: "k"}), first)
		same(t, "nothing new", changes(catalog.Compare{}), catalog.Difference{From: first.ID, Unchanged: 2})

		track(t, c, "t", catalog.File{Path: "a", ContentHash: "2"}, catalog.File{Path: "b", Size: 6}, catalog.File{Path: "c"})
		must[bool](t)(c.Forget(t.Context(), "t", "b"))
		track(t, c, "t", catalog.File{Path: "d", ContentHash: "d"})
		a2, d := catalog.FileRef{Path: "a", ContentHash: "2"}, catalog.FileRef{Path: "d", ContentHash: "d"}
		now := catalog.Difference{From: first.ID, Added: []catalog.FileRef{{Path: "c"}, d}, Changed: []catalog.FileRef{a2}, Removed: []catalog.FileRef{b}}
		same(t, "since the last", changes(catalog.Compare{}), now)
		second := snap(catalog.NewSnapshot{Paths: []string{"d", "a", "d"}})
		same(t, "chosen files", second.Files, []catalog.FileRef{a2, d})
		same(t, "parent", second.Parent, first.ID)
		same(t, "between", changes(catalog.Compare{Since: first.ID, Until: second.ID}),
			catalog.Difference{From: first.ID, To: second.ID, Added: []catalog.FileRef{d}, Changed: []catalog.FileRef{a2}, Removed: []catalog.FileRef{b}})
		same(t, "found files", changes(catalog.Compare{Files: []catalog.FileRef{a2, {Path: "e"}, {Path: "d", ContentHash: "other"}}}),
			catalog.Difference{Added: []catalog.FileRef{{Path: "e"}}, Changed: []catalog.FileRef{{Path: "d", ContentHash: "other"}}, Removed: []catalog.FileRef{{Path: "c"}}, Unchanged: 1})
		same(t, "found files and a snapshot", changes(catalog.Compare{Since: first.ID, Files: []catalog.FileRef{a}}), catalog.Difference{From: first.ID, Removed: []catalog.FileRef{b}, Unchanged: 1})

		third := snap(catalog.NewSnapshot{})
		c = open()
		same(t, "latest", must[catalog.Snapshot](t)(c.LatestSnapshot(t.Context(), "t")), third)
		list := func(p catalog.Page) (ids []string) {
			t.Helper()
			found, total, err := c.Snapshots(t.Context(), "t", p)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "total", total, 3)
			for _, s := range found {
				ids = append(ids, s.ID)
			}
			return ids
		}
		same(t, "page", list(catalog.Page{Limit: 2}), []string{third.ID, second.ID})
		same(t, "next page", list(catalog.Page{Limit: 2, After: second.ID}), []string{first.ID})
		for text, q := range map[string]catalog.Compare{
			`has no snapshot "t@000009"`:       {Since: "t@000009"},
			`has no snapshot "t_@000001"`:      {Since: first.ID, Until: "t_@000001"},
			`there is no table "u"`:            {Until: "u"},
			`files are compared with one snap`: {Until: first.ID, Files: []catalog.FileRef{}},
		} {
			table, kind := "t", tea.NotFound
			if q.Until == "u" {
				table = "u"
			}
			if q.Files != nil {
				kind = tea.ValidationError
			}
			_, err := c.ChangedFiles(t.Context(), table, q)
			fails(t, text, err, kind, text)
		}
		_, err = c.CreateSnapshot(t.Context(), "t", catalog.NewSnapshot{Paths: []string{"dd"}})
		fails(t, "a file that is not there", err, tea.NotFound, `no tracked file "dd"`)
	})
}

func TestManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, open func() *catalog.Catalog) {
		c := open()
		const writers, each = 8, 6
		created := make([]bool, writers)
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				var err error
				if _, created[w], err = c.Register(t.Context(), catalog.Table{Name: "t"}); err != nil {
					t.Error(err)
				}
				for i := range each {
					_, err := c.Track(t.Context(), "t", []catalog.File{{Path: fmt.Sprint(w, "/", i)}, {Path: "shared", Size: int64(w)}})
					_, snap := c.CreateSnapshot(t.Context(), "t", catalog.NewSnapshot{})
					if err := errors.Join(err, snap); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		made := slices.DeleteFunc(created, func(is bool) bool { return !is })
		same(t, "created", len(made), 1)
		_, total, err := c.Files(t.Context(), "t", catalog.FileQuery{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "files", total, writers*each+1)
		last := must[catalog.Snapshot](t)(c.LatestSnapshot(t.Context(), "t"))
		same(t, "snapshots", last.Number, int64(writers*each))
		same(t, "parent", last.Parent, fmt.Sprintf("t@%06d", writers*each-1))
	})
}

// TestTextsOfTimesHaveTheOrderOfTheTimes sorts by a time, as a query of a
// workflow does.
func TestTextsOfTimesHaveTheOrderOfTheTimes(t *testing.T) {
	devicetest.EachDevice(t, func(t *testing.T, d *devicetest.Device) {
		c := catalog.New(d.Documents, d.Clock)
		for i, name := range []string{"first", "second", "third"} {
			d.Pass(time.Duration(i) * 500 * time.Millisecond)
			register(t, c, catalog.Table{Name: name})
		}
		var order []string
		for _, doc := range must[[]store.Document](t)(d.Documents.Query(t.Context(), store.DocumentQuery{Kind: "catalog_table", OrderBy: "created_at"})) {
			order = append(order, doc.ID)
		}
		same(t, "by created_at", order, []string{"first", "second", "third"})
	})
}

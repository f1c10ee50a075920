package bucket

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// tableRows returns the rows of a query, each as JSON.
func tableRows(t *testing.T, s *store.Stores, sql string) []string {
	t.Helper()
	a, err := s.Tables.Query(t.Context(), store.TableQuery{SQL: sql, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, row := range a.Rows {
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

func createTable(t *testing.T, s *store.Stores, name, schema string, key ...string) {
	t.Helper()
	if _, err := s.Tables.Create(t.Context(), store.NewTable{Name: name, Schema: json.RawMessage(schema), PrimaryKey: key}); err != nil {
		t.Fatal(err)
	}
}

func insertRows(t *testing.T, s *store.Stores, table, rows string) {
	t.Helper()
	var all []store.TableRow
	if err := json.Unmarshal([]byte(rows), &all); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tables.Insert(t.Context(), table, all, store.RowReplace, store.TableCall{}); err != nil {
		t.Fatal(err)
	}
}

func deleteRows(t *testing.T, s *store.Stores, table, column, value string) {
	t.Helper()
	if _, err := s.Tables.Delete(t.Context(), table, store.RowSelection{Where: store.TableRow{column: json.RawMessage(value)}}, store.TableCall{}); err != nil {
		t.Fatal(err)
	}
}

// Rows that a device has changed before another one took over are merged, whether
// their table was consolidated since or not.
func TestLocalRowsAreMerged(t *testing.T) {
	t.Parallel()
	for _, consolidated := range []bool{false, true} {
		t.Run(fmt.Sprint("consolidated ", consolidated), func(t *testing.T) {
			t.Parallel()
			s := objtest.S3(t)
			proxy, behind := objtest.NewProxy(t, s)
			dir := t.TempDir()
			options := map[string]any{"acknowledge": "local", "delay_seconds": 3600, "lease_seconds": 10, "stall_timeout": 1, "attempts": 1, "idle_seconds": 60}
			device, err := Backend().Open(t.Context(), config(t, behind, prefixOf(t), dir, options))
			if err != nil {
				t.Fatal(err)
			}
			createTable(t, device, "orders", `{"id": "int", "at": "timestamp", "price": "decimal(10,2)", "j": "json"}`, "id")
			createTable(t, device, "events", `{"text": "string"}`)
			insertRows(t, device, "orders", `[{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}, {"id": 5}]`)
			insertRows(t, device, "events", `[{"text": "a"}, {"text": "b"}]`)
			other := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
			if got := tableRows(t, other, "SELECT count(*) AS n FROM orders"); !slices.Equal(got, []string{`{"n":5}`}) {
				t.Fatal(got)
			}
			insertRows(t, device, "orders", `[{"id": 2, "at": "2026-03-01T12:00:00.5Z", "price": 1.10, "j": {"a": [1]}}, {"id": 4, "price": 4}, {"id": 10, "price": 7}]`)
			deleteRows(t, device, "orders", "id", "[3, 5]")
			insertRows(t, device, "events", `[{"text": "c"}]`)
			deleteRows(t, device, "events", "text", `"a"`)
			createTable(t, device, "mine", `{"id": "int"}`, "id")
			insertRows(t, device, "mine", `[{"id": 1}]`)
			if consolidated {
				for _, table := range []string{"orders", "events", "mine"} {
					if _, err := device.Tables.Consolidate(t.Context(), table); err != nil {
						t.Fatal(err)
					}
				}
			}
			proxy.Hold(1)
			insertRows(t, other, "orders", `[{"id": 4, "price": 5}, {"id": 5, "price": 6}, {"id": 11}]`)
			insertRows(t, other, "events", `[{"text": "d"}, {"text": "e"}]`)
			if err := device.Close(); err != nil {
				t.Fatal(err)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			proxy.Hold(0)
			again := openStores(t, config(t, behind, prefixOf(t), dir, options))
			got := strings.Join(tableRows(t, again, "SELECT id, at, price, j FROM orders ORDER BY id"), "\n") + "\n" +
				strings.Join(tableRows(t, again, "SELECT text FROM events ORDER BY text"), "\n") + "\n" + strings.Join(tableRows(t, again, "SELECT id FROM mine"), "\n")
			want := `{"at":null,"id":1,"j":null,"price":null}
{"at":"2026-03-01T12:00:00.5Z","id":2,"j":{"a":[1]},"price":1.1}
{"at":null,"id":4,"j":null,"price":5}
{"at":null,"id":5,"j":null,"price":6}
{"at":null,"id":10,"j":null,"price":7}
{"at":null,"id":11,"j":null,"price":null}
{"text":"b"}
{"text":"c"}
{"text":"d"}
{"text":"e"}
{"id":1}`
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", "aside-*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// A record that the memory no longer takes stops the merge of no other, and is
// kept on the device.
func TestRefusedRecordsStayOnTheDevice(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	proxy, behind := objtest.NewProxy(t, s)
	dir := t.TempDir()
	options := map[string]any{"acknowledge": "local", "delay_seconds": 3600, "lease_seconds": 10, "stall_timeout": 1, "attempts": 1, "idle_seconds": 60}
	device, err := Backend().Open(t.Context(), config(t, behind, prefixOf(t), dir, options))
	if err != nil {
		t.Fatal(err)
	}
	put := func(s *store.Stores, key string, embedding ...float32) {
		t.Helper()
		if _, err := s.LongTerm.Store(t.Context(), store.Entry{Key: key, Value: json.RawMessage("1")}); err != nil {
			t.Fatal(err)
		}
		if err := s.Vectors.Store(t.Context(), "c", store.VectorItem{ID: key, Embedding: embedding}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := device.LongTerm.Store(t.Context(), store.Entry{Key: "first", Value: json.RawMessage("1")}); err != nil {
		t.Fatal(err)
	}
	other := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
	if _, err := other.LongTerm.Retrieve(t.Context(), "", "first"); err != nil {
		t.Fatal(err)
	}
	put(device, "mine", 1, 0)
	proxy.Hold(1)
	put(other, "theirs", 1, 0, 0)
	if err := device.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	proxy.Hold(0)
	again := openStores(t, config(t, behind, prefixOf(t), dir, options))
	for _, key := range []string{"first", "mine", "theirs"} {
		if _, err := again.LongTerm.Retrieve(t.Context(), "", key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*", "aside-*"))
	if len(left) != 1 || !strings.Contains(left[0], withRefused) {
		t.Errorf("%v is left, want a folder with the refused item", left)
	}
}

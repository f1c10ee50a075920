package embedded_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// device is a memory in a folder, with a clock that the test moves.
type device struct {
	store.LongTermMemory
	dir    string
	driver engine.Driver
	passed *atomic.Int64 // nanoseconds
	said   *bytes.Buffer // what it logs; read after close
	close  func()
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func open(t testing.TB, driver engine.Driver, dir string, passed time.Duration) *device {
	t.Helper()
	d := &device{dir: dir, driver: driver, passed: &atomic.Int64{}, said: &bytes.Buffer{}}
	d.passed.Store(int64(passed))
	m, err := devicetest.OpenMemory(t.Context(), driver, store.Config{
		Dir: dir, Now: func() time.Time { return start.Add(time.Duration(d.passed.Load())) }, Logger: slog.New(slog.NewTextHandler(d.said, nil)),
	}, vector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.LongTermMemory = m.LongTerm
	var once sync.Once
	d.close = func() {
		once.Do(func() {
			if err := m.Close(); err != nil {
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
	return open(t, d.driver, d.dir, time.Duration(d.passed.Load()))
}

// each runs a test on every database of this build.
func each(t *testing.T, test func(t *testing.T, d *device)) {
	t.Helper()
	t.Parallel()
	drivers := []engine.Driver{sqlite.Driver{}}
	if d, err := duckdb.New(); err == nil {
		drivers = append(drivers, d)
	}
	for _, driver := range drivers {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			test(t, open(t, driver, t.TempDir(), 0))
		})
	}
}

func (d *device) put(t testing.TB, key, value string, ttl time.Duration) store.Stored {
	t.Helper()
	stored, err := d.Store(t.Context(), store.Entry{Key: key, Value: json.RawMessage(value), TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return stored[0]
}

func (d *device) value(t testing.TB, key string) string {
	t.Helper()
	m, err := d.Retrieve(t.Context(), "", key)
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Value)
}

func (d *device) found(t testing.TB, query store.Search) []string {
	t.Helper()
	if query.Limit == 0 {
		query.Limit = 100
	}
	results, err := d.Search(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{}
	for _, r := range results.Found {
		keys = append(keys, r.Key)
	}
	return keys
}

func (d *device) blobs(t testing.TB) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.dir, "blobs", "ltm", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestStoreRetrieveDelete(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		first := d.put(t, "a", `{"b": 2, "a": 1.0, "big": 12345678901234567890123}`, 0)
		want(t, "created, deduplicated, inlined", []bool{first.Created, first.Deduplicated, first.Inlined}, []bool{true, false, true})
		want(t, "value", d.value(t, "a"), `{"a":1.0,"b":2,"big":12345678901234567890123}`)
		again := d.put(t, "a", `{"a": 1.0, "big": 12345678901234567890123, "b": 2}`, 0)
		want(t, "the same content", []bool{again.Created, again.Deduplicated}, []bool{false, true})
		want(t, "hash", again.ContentHash, first.ContentHash)
		changed := d.put(t, "a", `null`, 0)
		want(t, "other content", []bool{changed.Created, changed.Deduplicated}, []bool{false, false})
		d = d.reopen(t)
		want(t, "value", d.value(t, "a"), `null`)
		deleted, err := d.Delete(t.Context(), "", "a")
		if err != nil || !deleted {
			t.Errorf("Delete: %v, %v", deleted, err)
		}
		if deleted, err = d.Delete(t.Context(), "", "a"); err != nil || deleted {
			t.Errorf("the second Delete: %v, %v", deleted, err)
		}
		want(t, "value", d.value(t, "a"), "")
		want(t, "created again", d.put(t, "a", `1`, 0).Created, true)
	})
}

func TestLargeValuesAreBlobsThatTheSweepRemoves(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		large := func(word string) string { return `"` + strings.Repeat(word+" ", 400) + `"` }
		want(t, "inlined", d.put(t, "a", large("apple"), 0).Inlined, false)
		d.put(t, "b", large("apple"), 0)
		d.put(t, "c", large("pear"), 0)
		want(t, "blobs", d.blobs(t), 2)
		d = d.reopen(t)
		want(t, "value", d.value(t, "b"), large("apple"))
		want(t, "found", d.found(t, store.Search{Text: "pear"}), []string{"c"})
		d.put(t, "c", `"small pear"`, 0)
		if _, err := d.Delete(t.Context(), "", "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Sweep(t.Context(), start); err != nil {
			t.Fatal(err)
		}
		want(t, "blobs after the sweep", d.blobs(t), 1)
		want(t, "value", d.value(t, "b"), large("apple"))
	})
}

func TestSearchSeesEveryChangeAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.put(t, "sensor/1", `{"text": "The temperatures are rising", "unit": "celsius"}`, 0)
		d.put(t, "sensor/2", `{"text": "A pump failed"}`, 0)
		want(t, "by value", d.found(t, store.Search{Text: "temperature"}), []string{"sensor/1"})
		d.put(t, "sensor/2", `{"text": "The pump's temperature is fine"}`, 0)
		want(t, "after a change", len(d.found(t, store.Search{Text: "temperature"})), 2)
		want(t, "the old text", d.found(t, store.Search{Text: "failed"}), []string{})
		if _, err := d.Delete(t.Context(), "", "sensor/1"); err != nil {
			t.Fatal(err)
		}
		want(t, "after a removal", d.found(t, store.Search{Text: "temperature"}), []string{"sensor/2"})
		d = d.reopen(t)
		want(t, "after a restart", d.found(t, store.Search{Text: "temperature"}), []string{"sensor/2"})
		d.put(t, "sensor/3", `"temperature"`, 0)
		want(t, "by prefix of the key", d.found(t, store.Search{Text: "temperature", Prefix: "sensor/3"}), []string{"sensor/3"})
		want(t, "without a text", d.found(t, store.Search{Prefix: "sensor/"}), []string{"sensor/2", "sensor/3"})
	})
}

func TestMetadataFilterLosesNothing(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		var entries []store.Entry
		for i := range 300 {
			entries = append(entries, store.Entry{
				Key: fmt.Sprintf("k%03d", i), Value: json.RawMessage(`"common words"`),
				Metadata: json.RawMessage(fmt.Sprintf(`{"kind": %q, "n": %d, "tags": ["x", "t%d"]}`, []string{"rare", "often"}[min(i%100, 1)], i, i)),
			})
		}
		if _, err := d.Store(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"common", ""} {
			want(t, "equal", d.found(t, store.Search{Text: text, Metadata: storetest.Filter(t, map[string]any{"kind": "rare"})}), []string{"k000", "k100", "k200"})
			want(t, "any of", d.found(t, store.Search{Text: text, Metadata: storetest.Filter(t, map[string]any{"n": []any{int64(7), 299.0}})}), []string{"k007", "k299"})
			want(t, "in a list", d.found(t, store.Search{Text: text, Metadata: storetest.Filter(t, map[string]any{"tags": "t5"})}), []string{"k005"})
		}
	})
}

// TestARareRangeSeesEveryChange filters so many hits that the fields are kept in
// memory, and changes the entries afterwards.
func TestARareRangeSeesEveryChange(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		entry := func(key string, n int) store.Entry {
			return store.Entry{Key: key, Value: json.RawMessage(`"common words"`), Metadata: json.RawMessage(fmt.Sprintf(`{"n": %d}`, n))}
		}
		put := func(entries ...store.Entry) {
			t.Helper()
			if _, err := d.Store(t.Context(), entries...); err != nil {
				t.Fatal(err)
			}
		}
		above := func(limit int64) []string {
			t.Helper()
			return d.found(t, store.Search{Text: "common", Metadata: storetest.Filter(t, map[string]any{"n": map[string]any{"gte": limit}})})
		}
		var entries []store.Entry
		for i := range 400 {
			entries = append(entries, entry(fmt.Sprintf("k%03d", i), i))
		}
		put(entries...)
		want(t, "at first", above(398), []string{"k398", "k399"})
		put(entry("k000", 1000), entry("new", 1001))
		want(t, "after changes", above(399), []string{"k000", "k399", "new"})
		if _, err := d.Delete(t.Context(), "", "k399"); err != nil {
			t.Fatal(err)
		}
		want(t, "after a removal", above(399), []string{"k000", "new"})
		d.put(t, "new", `"common"`, 0)
		want(t, "after the metadata were dropped", above(399), []string{"k000"})
		short := entry("short", 2000)
		short.TTL = time.Minute
		put(short)
		want(t, "before it expires", above(1000), []string{"k000", "short"})
		d.passed.Add(int64(time.Hour))
		want(t, "after it expired", above(1000), []string{"k000"})
		want(t, "not rare", above(0)[:2], []string{"k000", "k001"})
		d = d.reopen(t)
		want(t, "after a restart", above(399), []string{"k000"})
		want(t, "with a prefix", d.found(t, store.Search{Text: "common", Prefix: "k1", Metadata: storetest.Filter(t, map[string]any{"n": map[string]any{"gt": int64(198)}})}), []string{"k199"})
	})
}

func TestExpiredEntriesAreInvisibleAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.put(t, "short", `"pump alarm"`, time.Minute)
		d.put(t, "long", `"pump alarm"`, time.Hour)
		d.put(t, "ever", `"pump"`, 0)
		want(t, "found", len(d.found(t, store.Search{Text: "pump"})), 3)
		score := func() float64 {
			results, err := d.Search(t.Context(), store.Search{Text: "alarm", Prefix: "long", Limit: 1})
			if err != nil || len(results.Found) != 1 {
				t.Fatal(results.Found, err)
			}
			return results.Found[0].Score
		}
		before := score()
		d.passed.Store(int64(time.Minute))
		want(t, "value", d.value(t, "short"), "")
		want(t, "found", d.found(t, store.Search{Text: "alarm"}), []string{"long"})
		if after := score(); after <= before {
			t.Errorf("the expired entry still counts: score %v, before %v", after, before)
		}
		want(t, "without a text", d.found(t, store.Search{}), []string{"ever", "long"})
		d = d.reopen(t)
		want(t, "found after a restart", d.found(t, store.Search{Text: "alarm"}), []string{"long"})
		want(t, "created", d.put(t, "short", `"alarm flooding"`, 0).Created, true)
		want(t, "found", d.found(t, store.Search{Text: "flooding"}), []string{"short"})
		d.passed.Store(int64(2 * time.Hour))
		n, err := d.Sweep(t.Context(), start.Add(2*time.Hour))
		if err != nil || n != 1 {
			t.Errorf("Sweep removed %d, %v; want 1", n, err)
		}
	})
}

func TestAClockThatIsSetBackRevives(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.put(t, "a", `"pump"`, time.Hour)
		want(t, "found", d.found(t, store.Search{Text: "pump"}), []string{"a"})
		d.passed.Store(int64(24 * time.Hour))
		want(t, "a day ahead", d.found(t, store.Search{Text: "pump"}), []string{})
		d.passed.Store(0)
		d = d.reopen(t)
		want(t, "set back", d.found(t, store.Search{Text: "pump"}), []string{"a"})
		want(t, "value", d.value(t, "a"), `"pump"`)
		d.passed.Store(int64(time.Hour))
		want(t, "in time", d.found(t, store.Search{Text: "pump"}), []string{})
	})
}

func TestWritersAndSearchersTogether(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		const writers, each = 8, 25
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for i := range each {
					key := fmt.Sprintf("%d/%d", w, i)
					d.put(t, key, fmt.Sprintf(`"word%dx%d common"`, w, i), 0)
					if got := d.found(t, store.Search{Text: fmt.Sprintf("word%dx%d", w, i)}); !cmp.Equal(got, []string{key}) {
						t.Errorf("%s is not found after it was stored: %v", key, got)
					}
					if i%5 == 4 {
						if _, err := d.Delete(t.Context(), "", key); err != nil {
							t.Error(err)
						}
						if got := d.found(t, store.Search{Text: fmt.Sprintf("word%dx%d", w, i)}); len(got) != 0 {
							t.Errorf("%s is found after it was removed", key)
						}
					}
				}
			})
		}
		group.Wait()
		want(t, "found", len(d.found(t, store.Search{Text: "common", Limit: 1000})), writers*each*4/5)
		d = d.reopen(t)
		want(t, "found after a restart", len(d.found(t, store.Search{Text: "common", Limit: 1000})), writers*each*4/5)
	})
}

// What the index's files are past is forgotten, except the mark that shows that they
// belong to the rows.
func TestAnIndexWithOlderStemsAnswersWhileItIsRewritten(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.put(t, "valve", `"a valve was added"`, 0)
		d.found(t, store.Search{Text: "valve"})
		d.close()
		manifests, err := filepath.Glob(filepath.Join(d.dir, "index", "*", "manifest"))
		if err != nil || len(manifests) != 1 {
			t.Fatal(manifests, err)
		}
		manifest, err := os.ReadFile(manifests[0])
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := bytes.Cut(manifest, []byte("\n"))
		body = bytes.Replace(body, []byte(`"stems":"3.1.1",`), nil, 1)
		head := fmt.Sprintf("tea-fulltext 4 %08x\n", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		if err := os.WriteFile(manifests[0], append([]byte(head), body...), 0o600); err != nil {
			t.Fatal(err)
		}
		d = d.reopen(t)
		want(t, "found", d.found(t, store.Search{Text: "adding"}), []string{"valve"})
		if s := d.said.String(); !strings.Contains(s, "rewritten in the background") || !strings.Contains(s, "Snowball 2") || strings.Contains(s, "rebuilt") {
			t.Errorf("the log says %s", s)
		}
		d = d.reopen(t)
		want(t, "found later", d.found(t, store.Search{Text: "adding"}), []string{"valve"})
	})
}

func TestIndexIsKeptWhenRemovalsAreForgotten(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for i := range 3 {
			d.put(t, fmt.Sprint("pump", i), `"a pump"`, 0)
			d.put(t, "old", fmt.Sprint(i), 0)
			d.found(t, store.Search{Text: "pump"})
			d = d.reopen(t)
			if _, err := d.Delete(t.Context(), "", "old"); err != nil {
				t.Fatal(err)
			}
			d.found(t, store.Search{Text: "pump"})
			d = d.reopen(t)
			d.found(t, store.Search{Text: "pump"})
			if _, err := d.Sweep(t.Context(), start); err != nil {
				t.Fatal(err)
			}
			said := d.said
			d = d.reopen(t)
			if found := d.found(t, store.Search{Text: "pump"}); len(found) != i+1 {
				t.Errorf("found %v", found)
			}
			d.close()
			if s := said.String() + d.said.String(); strings.Contains(s, "rebuilt") {
				t.Error(s)
			}
			d = d.reopen(t)
		}
	})
}

package memory_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

var kilobyte = strings.Repeat("0123456789abcde ", 60)

// BenchmarkStore is ltm.store of 1 KB by one caller.
func BenchmarkStore(b *testing.B) {
	each(b, func(b *testing.B, s subject) {
		i := 0
		medians(b, func() {
			i++
			s.call(b, "ltm.store", map[string]any{"key": fmt.Sprint("key/", i), "value": kilobyte})
		})
	})
}

// BenchmarkStoreAgainstInsert is ltm.store of 1 KB by one caller, in turns with
// a bare autocommitted INSERT of a key and a value into a separate database.
func BenchmarkStoreAgainstInsert(b *testing.B) {
	for _, engine := range benchEngines() {
		b.Run(engine, func(b *testing.B) {
			db := bareTable(b, engine)
			s := openOn(b, teatest.Linked(memory.Bundle()), engine)
			var stores, inserts []time.Duration
			for i := 0; b.Loop(); i++ {
				key := fmt.Sprint("key/", i)
				inserts = append(inserts, took(func() {
					if _, err := db.ExecContext(b.Context(), "INSERT INTO bare VALUES (?, ?)", key, kilobyte); err != nil {
						b.Fatal(err)
					}
				}))
				stores = append(stores, took(func() { s.call(b, "ltm.store", map[string]any{"key": key, "value": kilobyte}) }))
			}
			b.ReportMetric(float64(median(inserts)), "insert-median-ns/op")
			b.ReportMetric(float64(median(stores))/float64(median(inserts)), "x-insert")
		})
	}
}

// bareTable is a table with nothing around it.
func bareTable(b *testing.B, name string) *sql.DB {
	b.Helper()
	var driver engine.Driver = sqlite.Driver{}
	if name == "duckdb" {
		var err error
		if driver, err = duckdb.New(); err != nil {
			b.Fatal(err)
		}
	}
	handles, err := driver.Open(b.Context(), filepath.Join(b.TempDir(), driver.File()), engine.Limits{Connections: 1, Threads: 2, MemoryBytes: 1 << 28, AllowedDir: b.TempDir(), SpillDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = handles.Close() })
	if _, err := handles.Write.ExecContext(b.Context(), "CREATE TABLE bare (key VARCHAR PRIMARY KEY, value VARCHAR)"); err != nil {
		b.Fatal(err)
	}
	return handles.Write
}

// BenchmarkStoreTogether is ltm.store of 1 KB by 16 callers.
func BenchmarkStoreTogether(b *testing.B) {
	each(b, func(b *testing.B, s subject) {
		var next atomic.Int64
		var group sync.WaitGroup
		b.ResetTimer()
		for range 16 {
			group.Go(func() {
				for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
					s.call(b, "ltm.store", map[string]any{"key": fmt.Sprint("key/", i), "value": kilobyte})
				}
			})
		}
		group.Wait()
	})
}

// BenchmarkStoreItems is ltm.store with 1,000 items of 1 KB a call.
func BenchmarkStoreItems(b *testing.B) {
	each(b, func(b *testing.B, s subject) {
		const items = 1000
		for n := 0; b.Loop(); n++ {
			s.call(b, "ltm.store", map[string]any{"items": manyItems(n*items, items)})
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*items), "ns/item")
	})
}

func manyItems(first, n int) []any {
	items := make([]any, n)
	for i := range items {
		items[i] = map[string]any{"key": fmt.Sprint("item/", first+i), "value": kilobyte}
	}
	return items
}

// BenchmarkAmong is what one call costs where the memory has 1,000 to 100,000
// entries of 1 KB: retrieving, searching three words, and storing one more that
// the next search finds.
func BenchmarkAmong(b *testing.B) {
	targets := []struct {
		name   string
		target teatest.Target
	}{{"linked", teatest.Linked(memory.Bundle())}, {"plugin", plugin(b)}}
	for _, engine := range benchEngines() {
		for _, t := range targets {
			b.Run(engine+"/"+t.name, func(b *testing.B) { among(b, openOn(b, t.target, engine), engine) })
		}
	}
}

func among(b *testing.B, s subject, engine string) {
	random := rand.New(rand.NewPCG(1, 2))
	have := 0
	for _, n := range []int{1000, 10_000, 100_000} {
		for ; have < n; have += 1000 {
			s.call(b, "ltm.store", map[string]any{"items": textItems(random, have, 1000)})
		}
		s.call(b, "ltm.search", map[string]any{"query": "warm"})
		b.Run(fmt.Sprintf("%d/retrieve", n), func(b *testing.B) {
			medians(b, func() { s.call(b, "ltm.retrieve", map[string]any{"key": fmt.Sprint("doc/", rand.IntN(n))}) })
		})
		b.Run(fmt.Sprintf("%d/search", n), func(b *testing.B) {
			medians(b, func() {
				s.call(b, "ltm.search", map[string]any{"query": fmt.Sprintf("w%d w%d w%d", rand.IntN(50), rand.IntN(1000), rand.IntN(10_000))})
			})
		})
		b.Run(fmt.Sprintf("%d/store", n), func(b *testing.B) { storeMore(b, s, random, engine) })
	}
}

// storeMore stores entries that are searched by their text, in turns with bare
// inserts.
func storeMore(b *testing.B, s subject, random *rand.Rand, engine string) {
	db := bareTable(b, engine)
	var stores, inserts []time.Duration
	for b.Loop() {
		key, value := fmt.Sprint("more/", random.Uint64()), text(random)
		inserts = append(inserts, took(func() {
			if _, err := db.ExecContext(b.Context(), "INSERT INTO bare VALUES (?, ?)", key, value); err != nil {
				b.Fatal(err)
			}
		}))
		stores = append(stores, took(func() { s.call(b, "ltm.store", map[string]any{"key": key, "value": value}) }))
	}
	b.ReportMetric(float64(median(stores)), "median-ns/op")
	b.ReportMetric(float64(median(stores))/float64(median(inserts)), "x-insert")
}

func textItems(random *rand.Rand, first, n int) []any {
	items := make([]any, n)
	for i := range items {
		items[i] = map[string]any{"key": fmt.Sprint("doc/", first+i), "value": text(random)}
	}
	return items
}

// text is about 1 KB of words, few of them often.
func text(random *rand.Rand) string {
	words := rand.NewZipf(random, 1.1, 4, 50_000)
	var b strings.Builder
	for b.Len() < 1000 {
		fmt.Fprintf(&b, "w%d ", words.Uint64())
	}
	return b.String()
}

// BenchmarkFilteredSearch is ltm.search among 20,000 entries that all contain
// the word, with ranges that half of them, few and none pass.
func BenchmarkFilteredSearch(b *testing.B) {
	process := plugin(b)
	for _, engine := range benchEngines() {
		b.Run(engine, func(b *testing.B) {
			s := openOn(b, process, engine)
			const entries = 20_000
			for from := 0; from < entries; from += 1000 {
				items := make([]any, 1000)
				for i := range items {
					n := from + i
					items[i] = map[string]any{"key": fmt.Sprint("doc/", n), "value": fmt.Sprint("common text of entry ", n), "metadata": map[string]any{"n": n * 7919 % entries}}
				}
				s.call(b, "ltm.store", map[string]any{"items": items})
			}
			for _, test := range []struct {
				name string
				from int
			}{{"half", entries / 2}, {"hundredth", entries - entries/100}, {"ten", entries - 10}, {"none", entries}} {
				b.Run(test.name, func(b *testing.B) {
					params := map[string]any{"query": "common", "metadata_filter": map[string]any{"n": map[string]any{"gte": test.from}}}
					first := took(func() { s.call(b, "ltm.search", params) })
					medians(b, func() { s.call(b, "ltm.search", params) })
					b.ReportMetric(float64(first)/1e6, "ms-first")
				})
			}
		})
	}
}

// BenchmarkBulkLoad stores 100,000 entries of 1 KB, 1,000 a call, and reports
// what the first search takes: at once, and after the memory was closed and
// opened again.
func BenchmarkBulkLoad(b *testing.B) {
	process := plugin(b)
	for _, engine := range benchEngines() {
		b.Run(engine, func(b *testing.B) {
			const entries, batch = 100_000, 1000
			var load, first, reopened []time.Duration
			for b.Loop() {
				random := rand.New(rand.NewPCG(1, 2))
				dir := b.TempDir()
				s, end := openIn(b, process, engine, dir)
				search := func() { s.call(b, "ltm.search", map[string]any{"query": "w7 w300 w9000"}) }
				load = append(load, took(func() {
					for have := 0; have < entries; have += batch {
						s.call(b, "ltm.store", map[string]any{"items": textItems(random, have, batch)})
					}
				}))
				first = append(first, took(search))
				end()
				s, end = openIn(b, process, engine, dir)
				reopened = append(reopened, took(search))
				end()
			}
			for name, times := range map[string][]time.Duration{"load": load, "first-search": first, "reopened-search": reopened} {
				b.ReportMetric(float64(median(times))/1e6, name+"-ms")
			}
		})
	}
}

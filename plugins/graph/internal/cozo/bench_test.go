//go:build cozo && cgo

package cozo

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/storetest"
)

const ns = "default"

func openBench(b *testing.B, dir string) *DB {
	b.Helper()
	s, err := Open(b.Context(), store.Options{Dir: dir, Create: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s.(*DB)
}

func benchEntity(i int) store.Entity {
	id := "device" + strconv.Itoa(i)
	return store.Entity{
		ID: id, Type: "device", Properties: fmt.Appendf(nil, `{"name":"Device %d","watts":%d}`, i, i%100),
		Words: []string{"device", strconv.Itoa(i)}, Text: "Device " + strconv.Itoa(i), CreatedAt: 1, UpdatedAt: 1,
	}
}

// fill stores a random graph and returns the time of the entities alone.
func fill(b *testing.B, db *DB, nodes, edges int) (entities time.Duration) {
	b.Helper()
	const batch = 10_000
	began := time.Now()
	for at := 0; at < nodes; at += batch {
		var list []store.Entity
		for i := at; i < min(nodes, at+batch); i++ {
			list = append(list, benchEntity(i))
		}
		if err := db.Apply(b.Context(), ns, store.Batch{Entities: list}); err != nil {
			b.Fatal(err)
		}
	}
	entities = time.Since(began)
	r := rand.New(rand.NewPCG(1, 2))
	for at := 0; at < edges; at += batch {
		list := map[store.RelationKey]store.Relation{}
		for len(list) < min(batch, edges-at) {
			k := store.RelationKey{From: "device" + strconv.Itoa(r.IntN(nodes)), Type: "feeds", To: "device" + strconv.Itoa(r.IntN(nodes)), ValidFrom: store.Always}
			list[k] = store.Relation{RelationKey: k, ValidTo: store.Forever, Weight: 1, Properties: []byte("{}")}
		}
		var relations []store.Relation
		for _, e := range list {
			relations = append(relations, e)
		}
		if err := db.Apply(b.Context(), ns, store.Batch{Relations: relations}); err != nil {
			b.Fatal(err)
		}
	}
	return entities
}

// hops returns the number of entities within a number of hops.
func hops(b *testing.B, db *DB, start string, depth int) int {
	seen := map[string]bool{start: true}
	front := []string{start}
	for range depth {
		found, err := db.Adjacent(b.Context(), ns, store.Adjacency{IDs: front, At: 1, Lean: true, Max: 100_000})
		if err != nil {
			b.Fatal(err)
		}
		front = front[:0:0]
		for i := range found {
			if to := found[i].To; !seen[to] {
				seen[to] = true
				front = append(front, to)
			}
		}
	}
	return len(seen)
}

// median runs f and reports the median of its times.
func median(b *testing.B, unit string, scale time.Duration, f func(i int)) {
	var times []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		f(i)
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2])/float64(scale), unit)
}

func BenchmarkHops(b *testing.B) {
	for _, size := range []struct{ nodes, edges int }{{10_000, 50_000}, {200_000, 1_000_000}} {
		if size.edges > 100_000 && testing.Short() {
			continue
		}
		dir := b.TempDir()
		db := openBench(b, dir)
		fill(b, db, size.nodes, size.edges)
		for depth := 1; depth <= 3; depth++ {
			b.Run(fmt.Sprintf("%d/%d", size.edges, depth), func(b *testing.B) {
				median(b, "ms-median", time.Millisecond, func(i int) { hops(b, db, "device"+strconv.Itoa(i*7919%size.nodes), depth) })
			})
		}
		b.Run(fmt.Sprintf("%d/scan", size.edges), func(b *testing.B) {
			median(b, "ms-median", time.Millisecond, func(int) {
				n := 0
				if err := db.EachRelation(b.Context(), ns, store.RelationScan{Lean: true, Ever: true}, func(*store.Relation) error { n++; return nil }); err != nil || n < size.edges*9/10 {
					b.Fatal(n, err)
				}
			})
		})
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d/open", size.edges), func(b *testing.B) {
			median(b, "ms-median", time.Millisecond, func(int) {
				again, err := Open(b.Context(), store.Options{Dir: dir})
				if err != nil {
					b.Fatal(err)
				}
				hops(b, again.(*DB), "device1", 1)
				if err := again.Close(); err != nil {
					b.Fatal(err)
				}
			})
		})
		b.Logf("%s", residentMemory(b))
	}
}

func residentMemory(b *testing.B) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	line, _, _ := strings.Cut(rest, "\n")
	return "RSS " + strings.TrimSpace(line)
}

func BenchmarkPut(b *testing.B) {
	db := openBench(b, b.TempDir())
	storetest.Put(b, db, func(e store.Entity) error {
		p := newParams(ns)
		p.add("id").string(e.ID)
		p.add("properties").json(e.Properties)
		return db.engine.run(`?[namespace, id, type, properties, embedding, created_at, updated_at, source, text, facts, exact, words] <-
			[[$namespace, $id, 'device', $properties, null, 1, 1, '', '', '', null, []]] :put entity {namespace, id => type, properties, embedding,
			created_at, updated_at, source, text, facts, exact, words}`, p.done(), nil)
	})
}

func BenchmarkBatches(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		took := fill(b, openBench(b, b.TempDir()), 20_000, 0)
		b.ReportMetric(20_000/took.Seconds(), "entities/s")
	}
}

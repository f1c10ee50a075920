package graph_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchNodes and benchEdges are the size of the graph of the benchmarks.
const (
	benchNodes = 10_000
	benchEdges = 50_000
)

// benchGraph is a graph with the contents of fill.
func benchGraph(b *testing.B, backend string) *opened {
	b.Helper()
	g := openBench(b, backend)
	g.fill(benchNodes, benchEdges, true)
	return g
}

// fill stores a random graph with texts, and with embeddings if embedded is set.
func (g *opened) fill(nodes, edges int, embedded bool) {
	g.t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < nodes; from += 1000 {
		g.call("store_entities", object{"entities": benchEntities(random, from, 1000, embedded)})
	}
	for from := 0; from < edges; from += 5000 {
		var all []any
		for range 5000 {
			all = append(all, object{"from_entity": id(random.IntN(nodes)), "to_entity": id(random.IntN(nodes)), "relation_type": fmt.Sprintf("r%d", random.IntN(3))})
		}
		g.call("store_relations", object{"relations": all})
	}
}

// hops calls graph.neighbors of the i-th of some entities.
func (g *opened) hops(i, nodes, depth int) {
	g.t.Helper()
	g.call("neighbors", object{"entity_id": id(i * 7919 % nodes), "depth": depth, "direction": "out", "limit": 1000})
}

// question calls graph.retrieve_context about the i-th of some entities.
func (g *opened) question(i, nodes int) {
	g.t.Helper()
	vector := make([]any, 64)
	for d := range vector {
		vector[d] = float64(d) - 30
	}
	g.call("retrieve_context", object{"query": fmt.Sprintf("sensor %d pressure", i*7919%nodes), "embedding": vector, "hops": 2})
}

func benchEntities(random *rand.Rand, from, n int, embedded bool) []any {
	all := make([]any, n)
	for i := range all {
		entity := object{
			"entity_id": id(from + i), "entity_type": fmt.Sprintf("t%d", random.IntN(4)), "properties": object{"n": int64(i), "place": fmt.Sprintf("hall %d", random.IntN(100))},
			"text": fmt.Sprintf("Sensor %d of line %d measures pressure and flow.", from+i, random.IntN(1000)),
		}
		if embedded {
			vector := make([]any, 64)
			for d := range vector {
				vector[d] = random.Float64() - 0.5
			}
			entity["embedding"] = vector
		}
		all[i] = entity
	}
	return all
}

func openBench(b *testing.B, backend string) *opened {
	b.Helper()
	g := openWith(b, object{"graph": object{"backend": backend, "path": b.TempDir()}})
	g.needLibrary()
	return g
}

func eachBackend(b *testing.B, bench func(b *testing.B, backend string)) {
	for _, name := range backends(b) {
		b.Run(name, func(b *testing.B) { bench(b, name) })
	}
}

func BenchmarkNeighbors(b *testing.B) {
	eachBackend(b, func(b *testing.B, backend string) {
		g := benchGraph(b, backend)
		for depth := 1; depth <= 3; depth++ {
			b.Run(fmt.Sprintf("%dhops", depth), func(b *testing.B) {
				i := 0
				for b.Loop() {
					i++
					g.hops(i, benchNodes, depth)
				}
			})
		}
	})
}

func BenchmarkStoreEntity(b *testing.B) {
	eachBackend(b, func(b *testing.B, backend string) {
		g := openBench(b, backend)
		i := 0
		for b.Loop() {
			i++
			g.call("store_entity", object{"entity_id": id(i), "properties": object{"n": int64(i)}, "text": "Sensor of a line."})
		}
	})
}

func BenchmarkStoreEntities(b *testing.B) {
	eachBackend(b, func(b *testing.B, backend string) {
		g := openBench(b, backend)
		random := rand.New(rand.NewPCG(1, 2))
		i := 0
		for b.Loop() {
			b.StopTimer()
			entities := benchEntities(random, i*1000, 1000, false)
			i++
			b.StartTimer()
			g.call("store_entities", object{"entities": entities})
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i*1000), "ns/entity")
	})
}

func BenchmarkRetrieveContext(b *testing.B) {
	eachBackend(b, func(b *testing.B, backend string) {
		g := benchGraph(b, backend)
		i := 0
		for b.Loop() {
			i++
			g.question(i, benchNodes)
		}
	})
}

package memory_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	benchDimension = 384
	benchVectors   = 100_000
)

// points makes vectors around a thousand centres.
type points struct {
	random  *rand.Rand
	centres [][]float32
}

func newPoints() *points {
	p := &points{random: rand.New(rand.NewPCG(7, 11))}
	for range 1000 {
		p.centres = append(p.centres, p.outside())
	}
	return p
}

// outside returns a vector that resembles no other.
func (p *points) outside() []float32 {
	v, sum := make([]float32, benchDimension), 0.0
	for i := range v {
		v[i] = float32(p.random.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// inside returns a vector of a cluster, in which two have a similarity of 0.7.
func (p *points) inside() []float32 {
	v := make([]float32, benchDimension)
	for i, x := range p.centres[p.random.IntN(len(p.centres))] {
		v[i] = x + float32(p.random.NormFloat64()*0.65/math.Sqrt(benchDimension))
	}
	return v
}

// fillVectors stores the vectors of a benchmark in a new folder, waits for the
// graph, and reports how long the first query after the bulk load took.
func fillVectors(b *testing.B, dir, name string, p *points) (bulk time.Duration) {
	b.Helper()
	driver := engine.Driver(sqlite.Driver{})
	if name == "duckdb" {
		driver, _ = duckdb.New()
	}
	m, err := devicetest.OpenMemory(b.Context(), driver, store.Config{Dir: dir}, vector.Options{})
	if err != nil {
		b.Fatal(err)
	}
	x := m.Vectors
	for from := 0; from < benchVectors; from += 5000 {
		items := make([]store.VectorItem, 5000)
		for i := range items {
			n := from + i
			items[i] = store.VectorItem{
				ID: fmt.Sprintf("item-%06d", n), Text: fmt.Sprintf("the text of item %d, which says a little about it", n), Embedding: p.inside(),
				Metadata: map[string]any{"n": int64(n), "tenth": int64(n % 10), "thousandth": int64(n % 1000), "site": map[string]any{"name": "north"}},
			}
		}
		if err := x.Store(b.Context(), "default", items...); err != nil {
			b.Fatal(err)
		}
	}
	bulk = took(func() {
		if _, err := x.Search(b.Context(), "default", store.VectorQuery{Embedding: p.inside(), K: 10}); err != nil {
			b.Fatal(err)
		}
	})
	if err := m.Driver.WaitBuilt(b.Context(), "default"); err != nil {
		b.Fatal(err)
	}
	if err := m.Close(); err != nil {
		b.Fatal(err)
	}
	return bulk
}

func (s subject) nearest(b *testing.B, params map[string]any) []string {
	b.Helper()
	var r struct{ Results []struct{ ID string } }
	if err := s.call(b, "vector.query", params).Result.Decode(&r); err != nil {
		b.Fatal(err)
	}
	ids := make([]string, len(r.Results))
	for i, hit := range r.Results {
		ids[i] = hit.ID
	}
	return ids
}

// BenchmarkVectorQuery is vector.query among 100,000 vectors in a plugin process
// that has just been started: the first query, then the median and the recall
// of queries inside of the clusters, outside of them, and with filters.
func BenchmarkVectorQuery(b *testing.B) {
	process := plugin(b)
	for _, name := range benchEngines() {
		b.Run(name, func(b *testing.B) {
			dir, p := b.TempDir(), newPoints()
			bulk := fillVectors(b, dir, name, p)
			instance, err := process.Open(b.Context(), settingsOf(b, name, dir))
			if err != nil {
				b.Fatal(err)
			}
			defer instance.Close()
			s := subject{instance}
			first := took(func() { s.nearest(b, map[string]any{"embedding": p.inside(), "k": 10}) })
			for _, test := range []struct {
				name   string
				query  func() []float32
				filter map[string]any
			}{
				{"inside", p.inside, nil},
				{"outside", p.outside, nil},
				{"tenth", p.inside, map[string]any{"tenth": 3}},
				{"thousandth", p.inside, map[string]any{"thousandth": 3}},
				{"range", p.inside, map[string]any{"n": map[string]any{"gte": 40_000, "lt": 50_000}}},
			} {
				b.Run(test.name, func(b *testing.B) {
					s.measure(b, test.query, test.filter)
					if test.name == "inside" {
						b.ReportMetric(float64(bulk)/1e6, "ms-after-bulk")
						b.ReportMetric(float64(first)/1e6, "ms-first")
					}
				})
			}
		})
	}
}

// measure reports the time of the first query, the median of the others and
// their recall.
func (s subject) measure(b *testing.B, query func() []float32, filter map[string]any) {
	b.Helper()
	const recallQueries = 50
	ask := func(exact bool, embedding []float32) map[string]any {
		return map[string]any{"embedding": embedding, "k": 10, "filter": filter, "exact": exact}
	}
	first := took(func() { s.nearest(b, ask(false, query())) })
	found := 0
	for range recallQueries {
		q := query()
		want := map[string]bool{}
		for _, id := range s.nearest(b, ask(true, q)) {
			want[id] = true
		}
		for _, id := range s.nearest(b, ask(false, q)) {
			if want[id] {
				found++
			}
		}
	}
	queries := make([]tea.Payload, 100)
	for i := range queries {
		queries[i] = tea.ValuePayload(ask(false, query()))
	}
	i := 0
	medians(b, func() {
		if _, err := s.Invoke(b.Context(), &tea.Request{Action: "vector.query", Params: queries[i%len(queries)], Host: &teatest.Host{}}); err != nil {
			b.Fatal(err)
		}
		i++
	})
	b.ReportMetric(float64(first)/1e6, "ms-first-of-kind")
	b.ReportMetric(float64(found)/(10*recallQueries), "recall@10")
}

package vector

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const benchDimension = 384

// A large index takes a minute to build: each is built once and shared by the
// benchmarks of one run.
var benchIndexes = map[string]*Index{}

// benchSource returns the source of one of the data sets.
func benchSource(data string) *source {
	if data == "noise" {
		return newSource(benchDimension, 0, 0)
	}
	return newSource(benchDimension, 1000, 0.65)
}

func benchIndex(b *testing.B, data string, count int, o Options) *Index {
	b.Helper()
	o.Dimension = benchDimension
	key := fmt.Sprint(data, count, o.Exact)
	if ix := benchIndexes[key]; ix != nil {
		return ix
	}
	from := benchSource(data)
	ix, err := Open(filepath.Join(os.TempDir(), "tea-vector-bench-"+key), o)
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	for i := range count {
		if err := ix.Put(int64(i), int64(i+1), from.next()); err != nil {
			b.Fatal(err)
		}
	}
	if err := ix.WaitBuilt(context.Background()); err != nil {
		b.Fatal(err)
	}
	if built := ix.Stats().Graphed; built > 0 {
		b.Logf("%s: %d vectors: graph built in %v, %.0f inserts/s, %d unreached, %s",
			data, count, time.Since(begin), float64(built)/time.Since(begin).Seconds(), len(ix.gen.viewAt(1).unreached()), memory())
	}
	benchIndexes[key] = ix
	return ix
}

// memory returns the resident set of this process and what the heap holds.
func memory() string {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	resident := "unknown"
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "VmRSS:") {
				resident = strings.Join(strings.Fields(line)[1:], " ")
			}
		}
	}
	return "heap " + strconv.FormatUint(m.HeapAlloc>>20, 10) + " MiB, resident " + resident
}

// measure searches with the queries in turn and reports the median time and
// what part of the exact hits was found.
func measure(b *testing.B, ix *Index, queries [][]float32, k int, o SearchOptions) {
	b.Helper()
	ctx := context.Background()
	sum := 0.0
	for _, query := range queries {
		exact := o
		exact.Exact = true
		want, err := ix.Search(ctx, query, k, exact)
		if err != nil {
			b.Fatal(err)
		}
		got, err := ix.Search(ctx, query, k, o)
		if err != nil {
			b.Fatal(err)
		}
		sum += recall(got, want)
	}
	var times []time.Duration
	i := 0
	for b.Loop() {
		begin := time.Now()
		if _, err := ix.Search(ctx, queries[i%len(queries)], k, o); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begin))
		i++
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(sum/float64(len(queries)), fmt.Sprintf("recall@%d", k))
}

func BenchmarkExact(b *testing.B) {
	for _, count := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			ix := benchIndex(b, "clusters", count, Options{Exact: 1 << 30})
			measure(b, ix, benchSource("clusters").many(20), 10, SearchOptions{})
		})
	}
}

// BenchmarkGraph searches with queries like the data, and with queries that are
// like nothing in it. The graph of 100,000 takes minutes to build, so choose:
//
//	go test -run '^$' -bench 'Graph/clusters/100000/default' ./internal/vector/
func BenchmarkGraph(b *testing.B) {
	for _, data := range []string{"clusters", "noise"} {
		for _, count := range []int{1_000, 10_000, 100_000} {
			for _, ef := range []int{0, 48, 100, 400, 1000} {
				name := fmt.Sprintf("%s/%d/ef=%d", data, count, ef)
				if ef == 0 {
					name = fmt.Sprintf("%s/%d/default", data, count)
				}
				b.Run(name+"/inside", func(b *testing.B) {
					ix := benchIndex(b, data, count, Options{Exact: -1})
					from := benchSource(data)
					from.many(count)
					measure(b, ix, from.many(200), 10, SearchOptions{Ef: ef})
				})
				if data == "noise" {
					continue // nothing is outside
				}
				b.Run(name+"/outside", func(b *testing.B) {
					ix := benchIndex(b, data, count, Options{Exact: -1})
					measure(b, ix, foreign(benchDimension).many(200), 10, SearchOptions{Ef: ef})
				})
			}
		}
	}
}

// BenchmarkCallers searches with 1, 2, 4, ... callers at once, up to one for each
// core. The time is the total divided by the number of searches.
func BenchmarkCallers(b *testing.B) {
	for callers := 1; callers <= runtime.GOMAXPROCS(0); callers *= 2 {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			ix := benchIndex(b, "clusters", 10_000, Options{Exact: -1})
			queries := benchSource("clusters").many(200)
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for range callers {
				group.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if _, err := ix.Search(context.Background(), queries[i%int64(len(queries))], 10, SearchOptions{}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
		})
	}
}

// BenchmarkFilter searches the graph with filters that let pass ever less.
func BenchmarkFilter(b *testing.B) {
	for _, one := range []int64{1, 2, 10, 100, 10_000} {
		b.Run(fmt.Sprintf("one in %d", one), func(b *testing.B) {
			ix := benchIndex(b, "clusters", 100_000, Options{Exact: -1})
			ids := among(100_000, func(id int64) bool { return id%one == 0 })
			from := benchSource("clusters")
			from.many(100_000)
			measure(b, ix, from.many(50), 10, SearchOptions{Among: ids})
		})
	}
}

// BenchmarkFile writes and opens the companion file.
func BenchmarkFile(b *testing.B) {
	for _, count := range []int{1_000, 10_000, 100_000} {
		ix := benchIndex(b, "clusters", count, Options{Exact: -1})
		b.Run("flush/"+strconv.Itoa(count), func(b *testing.B) {
			for b.Loop() {
				ix.saved.seq = -1
				if err := ix.Flush(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("open/"+strconv.Itoa(count), func(b *testing.B) {
			for b.Loop() {
				again, err := Open(ix.path, ix.options)
				if err != nil || again.Discarded() != nil {
					b.Fatal(err, again.Discarded())
				}
				if err := again.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// closeBenchIndexes ends what the benchmarks share.
func closeBenchIndexes() {
	for _, ix := range benchIndexes {
		ix.Close()
		os.Remove(ix.path)
	}
}

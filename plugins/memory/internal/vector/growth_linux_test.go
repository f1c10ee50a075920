package vector

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkGrowth opens a file of a size and searches. It reports the CPU time of
// the first search, of the others and of exact scans, the recall, and the heap. A
// file that is missing is built, which takes minutes, so choose, and run it twice:
//
//	go test -run '^$' -bench 'Growth/clusters/300000' -benchtime 300x -v ./internal/vector/
func BenchmarkGrowth(b *testing.B) {
	for _, data := range []string{"clusters", "noise"} {
		for _, count := range []int{30_000, 100_000, 300_000} {
			b.Run(fmt.Sprintf("%s/%d", data, count), func(b *testing.B) {
				path := filepath.Join(os.TempDir(), fmt.Sprintf("tea-vector-growth-%d-%s-%d", formatVersion, data, count))
				o := Options{Dimension: benchDimension, Owner: "growth"}
				if _, err := os.Stat(path); err != nil {
					buildGrowth(b, path, o, benchSource(data), count)
				}
				searchGrowth(b, path, o, benchSource(data).many(b.N))
			})
		}
	}
}

// buildGrowth stores vectors and flushes as the owner of the rows does: when
// their number has doubled.
func buildGrowth(b *testing.B, path string, o Options, from *source, count int) {
	b.Helper()
	ix, err := Open(path, o)
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	used := cpuTime()
	for i := range count {
		if err := ix.Put(int64(i+1), int64(i+1), from.next()); err != nil {
			b.Fatal(err)
		}
		if i&(i-1) == 0 && i > 2000 {
			if err := ix.Flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := ix.WaitBuilt(context.Background()); err != nil {
		b.Fatal(err)
	}
	if err := ix.Flush(); err != nil {
		b.Fatal(err)
	}
	b.Logf("built: CPU %v, %s", cpuTime()-used, memory())
}

func searchGrowth(b *testing.B, path string, o Options, queries [][]float32) {
	b.Helper()
	b.Logf("before: %s", memory())
	used := cpuTime()
	// milliseconds returns the CPU time since the last call, for each of n searches.
	milliseconds := func(n int) float64 {
		last := used
		used = cpuTime()
		return (used - last).Seconds() * 1000 / float64(n)
	}
	ix, err := Open(path, o)
	if err != nil || ix.Discarded() != nil {
		b.Fatal(err, ix.Discarded())
	}
	defer ix.Close()
	find := func(query []float32, o SearchOptions) []Hit {
		hits, err := ix.Search(context.Background(), query, 10, o)
		if err != nil {
			b.Fatal(err)
		}
		return hits
	}
	find(queries[0], SearchOptions{})
	first := milliseconds(1)
	b.Logf("after the first search: %s", memory())
	for _, query := range queries { // reads all
		find(query, SearchOptions{})
	}
	milliseconds(1)
	var found [][]Hit
	b.ResetTimer()
	for _, query := range queries {
		found = append(found, find(query, SearchOptions{}))
	}
	b.StopTimer()
	b.ReportMetric(first, "ms-first") // ResetTimer forgets metrics
	b.ReportMetric(milliseconds(len(queries)), "ms-search")
	b.Logf("after searches: %s", memory())
	sum := 0.0
	exact := queries[:min(len(queries), 100)]
	for i, query := range exact {
		sum += recall(found[i], find(query, SearchOptions{Exact: true}))
	}
	b.ReportMetric(milliseconds(len(exact)), "ms-exact")
	b.ReportMetric(sum/float64(len(exact)), "recall@10")
	b.Logf("after exact scans: %s", memory())
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package main

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/the-edge-agent/tea/host"
)

// BenchmarkStateThroughBranches reports how much memory a state of 10 MB takes
// while eight branches hold it, in multiples of its size.
func BenchmarkStateThroughBranches(b *testing.B) {
	const size, branches = 10_000_000, 8
	var worst float64
	for b.Loop() {
		before := liveBytes()
		var all sync.WaitGroup
		all.Add(branches)
		var held uint64
		var once sync.Once
		meet := host.Func("bench.meet", "Waits until every branch is there.", func(context.Context, map[string]any) (any, error) {
			all.Done()
			all.Wait()
			once.Do(func() { held = liveBytes() })
			return nil, nil
		})
		h := newHost(b, meet)
		wf := parse(b, h, fanOut(branches, "bench.meet"))
		runOnce(b, wf, host.RunOptions{Input: map[string]any{"data": texts(size)}})
		worst = max(worst, float64(held-before)/size)
	}
	b.ReportMetric(worst, "x-state")
}

// liveBytes is the heap after a collection.
func liveBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

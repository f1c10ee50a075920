package script

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// watchEvery is the interval at which the heap is measured during long runs.
const watchEvery = 5 * time.Millisecond

const heapMetric = "/memory/classes/heap/objects:bytes"

// watcher ends runs that make the heap grow too far. gopher-lua cannot count the
// allocations of a state, so the whole process is measured: if the heap grows by
// the limit during a run, the run is stopped, together with others that have
// lasted as long, except runs that wait for an action and do not allocate. Short
// runs are not watched, and the watcher's goroutine runs only while there are runs
// to watch.
type watcher struct {
	limit uint64

	mu   sync.Mutex
	runs map[*run]uint64 // the smallest heap since the start of watching
}

// add watches a run until remove.
func (w *watcher) add(r *run) {
	heap := heapSize() // takes too long for the shared lock
	w.mu.Lock()
	defer w.mu.Unlock()
	r.watched.Store(true)
	switch {
	case r.ended.Load(): // the timer fired late
		return
	case w.runs == nil:
		w.runs = map[*run]uint64{}
		go w.loop()
	}
	w.runs[r] = heap
}

// remove ends the watching of a run that has ended.
func (w *watcher) remove(r *run) {
	if !r.watched.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, r)
}

// rebase restarts the measurement of a run after it waited.
func (w *watcher) rebase(r *run) {
	if !r.watched.Load() {
		return
	}
	heap := heapSize()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.runs[r]; ok {
		w.runs[r] = heap
	}
}

func (w *watcher) loop() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for range tick.C {
		w.mu.Lock()
		if len(w.runs) == 0 {
			w.runs = nil
			w.mu.Unlock()
			return
		}
		heap := heapSize()
		for r, lowest := range w.runs {
			w.runs[r] = min(lowest, heap)
		}
		grown := w.overLimit(heap)
		w.mu.Unlock()
		if len(grown) > 0 {
			w.stopGrown(grown)
		}
	}
}

// stopGrown collects garbage and stops the runs that are still over the limit. They
// are suspended meanwhile, because a script can allocate faster than the garbage
// collection.
func (w *watcher) stopGrown(grown []*run) {
	for _, r := range grown {
		r.suspend()
	}
	runtime.GC()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.overLimit(heapSize()) {
		r.halt(outOfMemory)
		delete(w.runs, r)
	}
	for _, r := range grown {
		r.decide(notStopped)
	}
}

// overLimit returns the runs during which the heap has grown too far.
func (w *watcher) overLimit(heap uint64) []*run {
	var out []*run
	for r, lowest := range w.runs {
		if !r.waiting.Load() && heap > lowest && heap-lowest > w.limit {
			out = append(out, r)
		}
	}
	return out
}

func heapSize() uint64 {
	sample := []metrics.Sample{{Name: heapMetric}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

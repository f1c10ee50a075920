package tabular

import (
	"os"
	"sync"
)

// readers removes files that a consolidation has replaced, once no reader needs
// them: a reader can open the files that existed when it began. The zero value is
// ready; it is safe for concurrent use.
type readers struct {
	mu     sync.Mutex
	now    int64         // counts retirements
	active map[int64]int // the number of readers by the value of now when they began
	old    []retired
}

type retired struct {
	at    int64
	paths []string
}

// begin registers a reader. The caller calls end.
func (r *readers) begin() (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == nil {
		r.active = map[int64]int{}
	}
	began := r.now
	r.active[began]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.active[began]--; r.active[began] == 0 {
			delete(r.active, began)
		}
		r.remove()
	}
}

// retire schedules the removal of files that new readers no longer find.
func (r *readers) retire(paths ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.old = append(r.old, retired{at: r.now, paths: paths})
	r.now++
	r.remove()
}

// remove removes the files that were retired before the oldest reader began. The
// sweep at the next start removes files that cannot be removed now.
func (r *readers) remove() {
	oldest := r.now
	for began := range r.active {
		oldest = min(oldest, began)
	}
	for len(r.old) > 0 && r.old[0].at < oldest {
		for _, path := range r.old[0].paths {
			_ = os.Remove(path)
		}
		r.old = r.old[1:]
	}
}

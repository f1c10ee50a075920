package tabular

import (
	"os"
	"sync"
)

// readers know who may be reading files, so that a file which a consolidation
// has replaced is removed when nobody can need it any more: a reader may open
// the files that were there when it began.
type readers struct {
	mu     sync.Mutex
	now    int64         // counts retirements
	active map[int64]int // readers by the now of their beginning
	old    []retired
}

type retired struct {
	at    int64
	paths []string
}

// begin notes a reader; it calls what is returned at its end.
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

// retire takes files that no reader will be led to from now on.
func (r *readers) retire(paths ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.old = append(r.old, retired{at: r.now, paths: paths})
	r.now++
	r.remove()
}

// remove removes what was retired before the oldest reader began. A file that
// cannot be removed is left to the sweep at the next start.
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

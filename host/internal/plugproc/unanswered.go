package plugproc

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// unanswered are the calls that a process has not answered, those included
// that nobody waits for any more. The zero value has none.
type unanswered struct {
	mu     sync.Mutex
	counts map[string]int // by action
}

func (u *unanswered) add(action string, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.counts == nil {
		u.counts = map[string]int{}
	}
	if u.counts[action] += n; u.counts[action] == 0 {
		delete(u.counts, action)
	}
}

// String lists the actions; "" where all calls were answered.
func (u *unanswered) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(u.counts)), ", ")
}

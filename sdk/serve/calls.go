package serve

import "sync"

// calls are the running calls. A shutdown waits for them, and the host asks for the
// state of calls that it has abandoned.
type calls struct {
	mu       sync.Mutex
	running  int
	byID     map[string]int
	draining bool
	drained  chan struct{}
	begun    int           // all calls
	next     chan struct{} // closed by the next call, nil if nothing waits for it
}

// begin admits a call. It returns false after draining has begun.
func (c *calls) begin(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	if c.byID == nil {
		c.byID = map[string]int{}
	}
	c.byID[id]++
	c.running++
	c.begun++
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
	return true
}

func (c *calls) end(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID[id]--; c.byID[id] == 0 {
		delete(c.byID, id)
	}
	if c.running--; c.running == 0 && c.draining {
		close(c.drained)
	}
}

// drain refuses new calls and returns a channel that is closed when the last running
// call has ended.
func (c *calls) drain() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.draining {
		c.draining, c.drained = true, make(chan struct{})
		if c.running == 0 {
			close(c.drained)
		}
	}
	return c.drained
}

// isRunning reports whether the call with this id is running.
func (c *calls) isRunning(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[id] > 0
}

// isIdle reports whether no call is running.
func (c *calls) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running == 0
}

func (c *calls) isDraining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

package serve

import "sync"

// calls counts the running calls so that a shutdown can wait for them.
type calls struct {
	mu       sync.Mutex
	running  int
	draining bool
	drained  chan struct{}
}

// begin admits a call. It returns false after draining has begun.
func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	c.running++
	return true
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 && c.draining {
		close(c.drained)
	}
}

// drain refuses further calls and returns a channel that is closed when the
// last running one has ended.
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

func (c *calls) isDraining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

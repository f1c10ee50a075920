package engine

import (
	"sync"
	"time"
)

// workClock measures a run's working time across resumes. It pauses while the run
// waits for an answer. The zero value does not run.
type workClock struct {
	now func() time.Time
	// limit is the available time, 0 = unlimited; over is called when it is used up.
	limit time.Duration
	over  func()
	// after calls a function after a delay; nil = time.AfterFunc.
	after func(d time.Duration, fn func()) (stop func())

	mu    sync.Mutex
	used  time.Duration
	since time.Time
	asked int
	// halt stops the timer; nil if there is none.
	halt func()
}

func (c *workClock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run()
}

// run starts the clock; the caller holds mu.
func (c *workClock) run() {
	c.since = c.now()
	if c.limit <= 0 {
		return
	}
	if left := c.limit - c.used; left > 0 {
		if c.after == nil {
			timer := time.AfterFunc(left, c.over)
			c.halt = func() { timer.Stop() }
		} else {
			c.halt = c.after(left, c.over)
		}
	} else {
		c.over()
	}
}

// pause stops the clock until resume has been called the same number of times.
func (c *workClock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked++; c.asked > 1 || c.now == nil {
		return
	}
	c.used += c.now().Sub(c.since)
	if c.halt != nil {
		c.halt()
	}
}

func (c *workClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked--; c.asked == 0 && c.now != nil {
		c.run()
	}
}

// total returns the working time so far.
func (c *workClock) total() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked > 0 {
		return c.used
	}
	return c.used + c.now().Sub(c.since)
}

func (c *workClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halt != nil {
		c.halt()
	}
}

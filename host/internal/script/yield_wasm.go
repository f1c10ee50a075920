package script

import "time"

const (
	yieldAfter = 20 * time.Millisecond
	yieldSteps = 1 << 10 // between checks of the clock
)

// yielder lets other goroutines run while Lua code runs: there is one thread, and
// no signal to preempt a busy goroutine.
type yielder struct {
	steps int
	last  time.Time
}

// yield regularly lets the timer of the deadline, the memory watcher and the events
// of the page run.
func (y *yielder) yield() {
	if y.steps++; y.steps < yieldSteps {
		return
	}
	y.steps = 0
	if now := time.Now(); y.last.IsZero() {
		y.last = now
	} else if now.Sub(y.last) > yieldAfter {
		time.Sleep(time.Nanosecond) //nolint:forbidigo // it waits for nothing
		y.last = time.Now()
	}
}

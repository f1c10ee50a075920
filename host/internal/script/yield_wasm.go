package script

import "time"

const (
	yieldAfter = 20 * time.Millisecond
	yieldSteps = 1 << 10 // between looks at the clock
)

// yielder lets other goroutines run beside Lua code: there is one thread, and no
// signal that interrupts a goroutine that computes.
type yielder struct {
	steps int
	last  time.Time
}

// yield lets the timer of the deadline, the watch of the memory, and the events of
// the page run from time to time.
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

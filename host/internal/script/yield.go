//go:build !wasm

package script

// yielder does nothing: the scheduler can preempt a busy goroutine.
type yielder struct{}

func (yielder) yield() {}

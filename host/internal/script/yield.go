//go:build !wasm

package script

// yielder does nothing: the scheduler interrupts a goroutine that computes.
type yielder struct{}

func (yielder) yield() {}

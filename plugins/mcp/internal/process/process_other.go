//go:build !linux

package process

// awaitExit blocks until the child has ended, and reaps it.
func (p *Process) awaitExit() { _ = p.cmd.Wait() }

// keepDescriptors does nothing: those that Go opens are not passed on.
func keepDescriptors() {}

// limit does nothing: only Linux can limit another process.
func limit(int, int64) {}

// watchMemory does nothing.
func (*Process) watchMemory(int64) {}

//go:build !linux

package process

// awaitExit blocks until the child has ended, and reaps it.
func (p *Process) awaitExit() { _ = p.cmd.Wait() }

// keepDescriptors has no effect: Go does not pass on descriptors that it opens.
func keepDescriptors() {}

// limit has no effect: only Linux can limit another process.
func limit(int, int64) {}

// watchMemory has no effect.
func (*Process) watchMemory(int64) {}

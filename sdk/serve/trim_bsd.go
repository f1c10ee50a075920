//go:build !linux

package serve

import "runtime/debug"

// trimWhenIdle gives back what the start has allocated.
func trimWhenIdle(*calls) { debug.FreeOSMemory() }

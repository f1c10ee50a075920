//go:build !linux

package serve

import "runtime/debug"

// trimWhenIdle returns memory that the start has allocated.
func trimWhenIdle(*calls) { debug.FreeOSMemory() }

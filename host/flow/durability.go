package flow

import (
	"fmt"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Durability is when the records of a run reach the disk; see
// docs/guide/checkpoints.md.
type Durability string

// The durabilities.
const (
	// DurabilityExit keeps records in memory until an interrupt, a failure or
	// the end; a long run spills them to the file without waiting for the disk.
	DurabilityExit Durability = "exit"
	// DurabilitySync has each record on disk before the run continues.
	DurabilitySync Durability = "sync"
	// DurabilityAsync writes in the background, a fraction of a second later.
	DurabilityAsync Durability = "async"
	// DurabilityOff never writes anything.
	DurabilityOff Durability = "off"
)

// ParseDurability returns the durability with a name. The error lists the names.
func ParseDurability(name string) (Durability, error) {
	switch d := Durability(name); d {
	case DurabilityExit, DurabilitySync, DurabilityAsync, DurabilityOff:
		return d, nil
	}
	return "", fmt.Errorf("unknown durability %q: expected exit, sync, async or off%s", name, diag.Ending(name, []string{"exit", "sync", "async", "off"}))
}

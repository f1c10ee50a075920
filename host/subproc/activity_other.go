//go:build !linux

package subproc

import (
	"syscall"
	"time"
)

// shortestLook is the minimum interval between two checks of a process's memory.
const shortestLook = 200 * time.Millisecond

// apply sets no limits: this system has no call that limits another process.
// GOMEMLIMIT and GOMAXPROCS remain.
func (Limits) apply(int) error { return nil }

// physicalMemory is not known on this system.
func physicalMemory() int64 { return 0 }

// killStrays kills nothing: the environment of other processes is not readable
// on this system.
func killStrays(int, string) {}

// cgroups and cgroup are for Linux only.
type (
	cgroups struct{ prefix string }
	cgroup  struct{}
)

func newCgroups() *cgroups { return nil }

func (*cgroups) add(string, Limits) *cgroup { return nil }

func (*cgroup) admit(*syscall.SysProcAttr) {}

func (*cgroup) kill() {}

func (*cgroup) exhausted() bool { return false }

func (*cgroup) remove() {}

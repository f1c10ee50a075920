//go:build !linux

package plugproc

import (
	"syscall"
	"time"
)

// activity is not known on this system: a plugin that does not answer is left to
// the deadlines of its calls.
func (*runner) activity() (used time.Duration, stopped, known bool) { return 0, false, false }

// resident is not known on this system.
func resident(int) (all, own int64) { return 0, 0 }

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

//go:build !unix

package childproc

import (
	"os"
	"syscall"
)

// HasGroups reports whether the system has process groups and a [Guard] can kill them.
const HasGroups = false

// detach does nothing: the guard needs a Unix shell, and does not start here.
func detach(*syscall.SysProcAttr) {}

// KillGroup kills the process: this system has no process groups.
func KillGroup(p *os.Process) error { return p.Kill() }

// EndGroup does nothing: this system has no process groups.
func EndGroup(*os.Process) {}

//go:build unix

package childproc

import (
	"os"
	"syscall"
)

// HasGroups reports whether the system has process groups and a [Guard] can kill them.
const HasGroups = true

func group(a *syscall.SysProcAttr) { a.Setpgid = true }

// detach starts a process in a new session.
func detach(a *syscall.SysProcAttr) { a.Setsid = true }

// KillGroup kills a process and its group. Without process groups it kills the process.
func KillGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// EndGroup asks a process group to end. Without process groups it does nothing.
func EndGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

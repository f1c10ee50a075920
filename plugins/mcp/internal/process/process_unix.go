//go:build unix

package process

import (
	"os"
	"syscall"
)

// hasGuard reports whether a guard can kill process groups.
const hasGuard = true

// ownGroup starts a process in its own process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the group of a process. It can have ended already.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// terminate asks the group of a process to end.
func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

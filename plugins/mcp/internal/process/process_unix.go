//go:build unix

package process

import (
	"os"
	"syscall"
)

// hasGuard reports whether a guard can kill process groups.
const hasGuard = true

// ownGroup starts a process in a separate process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the group of a process, which may have ended.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// terminate sends SIGTERM to the group of a process.
func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

//go:build unix

package childproc

import "syscall"

// detached starts a process in a new session.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

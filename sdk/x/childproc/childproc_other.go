//go:build !unix

package childproc

import "syscall"

// detached is empty: the guard needs a Unix shell, and does not start here.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

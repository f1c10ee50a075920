package objtest

import "syscall"

// dyingWithParent ends a server when the test's process ends.
func dyingWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

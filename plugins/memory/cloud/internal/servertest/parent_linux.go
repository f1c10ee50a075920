package servertest

import (
	"os/exec"
	"syscall"
)

// endWithParent ends a process with the test program.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

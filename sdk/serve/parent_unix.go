//go:build unix

package serve

import (
	"os"
	"syscall"
)

// killGroup kills the process group that the host has created for the plugin,
// including the plugin.
func killGroup() {
	if pid := os.Getpid(); syscall.Getpgrp() == pid {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// openParent opens the inherited pipe.
func openParent(fd int) *os.File {
	syscall.CloseOnExec(fd)
	_ = syscall.SetNonblock(fd, true) // the wait needs no thread
	return os.NewFile(uintptr(fd), "host")
}

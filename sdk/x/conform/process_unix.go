//go:build unix

package conform

import (
	"os"
	"syscall"
)

// processAttr gives a plugin its own process group: it ends with its group.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a plugin with its group.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

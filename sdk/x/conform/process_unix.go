//go:build unix

package conform

import (
	"os"
	"syscall"
)

// processAttr gives a plugin a separate process group, which ends with it.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a plugin with its group.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

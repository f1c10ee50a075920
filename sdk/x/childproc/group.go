package childproc

import (
	"os/exec"
	"syscall"
)

// Group makes a command start in a separate process group, which [KillGroup] kills.
func Group(cmd *exec.Cmd) { group(attributes(cmd)) }

// EndWithParent makes the kernel kill the process of a command when the thread that
// started it ends. Only Linux can do that; elsewhere it does nothing.
func EndWithParent(cmd *exec.Cmd) { endWithParent(attributes(cmd)) }

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	return cmd.SysProcAttr
}

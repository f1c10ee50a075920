//go:build unix

package chromium

import (
	"os/exec"
	"syscall"
)

// setAttributes makes the browser and its children a process group, which is killed
// together.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
}

func killGroup(group int) error { return syscall.Kill(-group, syscall.SIGKILL) }

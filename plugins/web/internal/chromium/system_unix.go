//go:build unix

package chromium

import (
	"os/exec"
	"syscall"
)

// setAttributes prepares the browser's command. The browser and its children
// are a process group, which is killed together.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
}

func killGroup(group int) error { return syscall.Kill(-group, syscall.SIGKILL) }

//go:build unix

package chromium

import (
	"os"
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

// lock locks a file until it is closed or this process ends, and reports whether
// it was not locked.
func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

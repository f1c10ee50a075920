package chromium

import (
	"os/exec"
	"syscall"
)

// setAttributes gives the browser a process group, which is killed together,
// and has the kernel kill it when this process ends.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

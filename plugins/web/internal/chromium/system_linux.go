package chromium

import "syscall"

// attributes give the browser a process group, and make the kernel kill it when
// this process ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

//go:build unix && !linux

package chromium

import "syscall"

// attributes give the browser a process group. It ends with this process when
// its pipe is closed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

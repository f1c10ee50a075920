//go:build unix && !linux

package plugproc

import "syscall"

// processAttr puts a plugin into a process group of its own. There is no
// parent-death signal here; the plugin's own watch of its host remains.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns at once; waiting reaps the child.
func awaitExit(int) {}

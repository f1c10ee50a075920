//go:build !linux

package childproc

import "syscall"

// Pin does nothing: only Linux can limit another process.
func Pin(int, int) error { return nil }

func endWithParent(*syscall.SysProcAttr) {}

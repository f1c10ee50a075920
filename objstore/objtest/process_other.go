//go:build !linux

package objtest

import "syscall"

func dyingWithParent() *syscall.SysProcAttr { return nil }

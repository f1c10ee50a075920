package childproc

import "syscall"

func group(*syscall.SysProcAttr) {}

package childproc

import "syscall"

// group keeps Ctrl-C from the process.
func group(a *syscall.SysProcAttr) { a.CreationFlags |= syscall.CREATE_NEW_PROCESS_GROUP }

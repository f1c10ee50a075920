package atomicfile

import (
	"os"
	"syscall"
)

// SyncData makes the content of an open file durable, and its size if it has changed.
func SyncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

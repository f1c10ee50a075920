package server

import (
	"os"
	"syscall"
)

// syncData makes the content of a file durable, and its size if that has changed.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes f's content durable. The size is part of it, the time of the
// last change is not, which saves a write.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

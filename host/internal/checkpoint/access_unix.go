//go:build unix

package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// nonBlock prevents the opening of a pipe from waiting for its other end.
const nonBlock = unix.O_NONBLOCK

// checkWritable checks that this process can create files in a directory.
func checkWritable(dir string) error {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}

// openFile opens a file that can be renamed and removed while it is open.
func openFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

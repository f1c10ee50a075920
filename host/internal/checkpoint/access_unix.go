//go:build unix

package checkpoint

import "golang.org/x/sys/unix"

// checkWritable checks that this process can make files in a directory.
func checkWritable(dir string) error {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}

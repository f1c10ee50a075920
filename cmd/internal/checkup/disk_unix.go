//go:build unix

package checkup

import "golang.org/x/sys/unix"

// CheckWritable checks that this process can make files in a directory.
func CheckWritable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// CheckFile checks that this process can write into an existing file.
func CheckFile(path string) error { return unix.Access(path, unix.W_OK) }

// freeSpace returns the bytes that are free on the disk of a directory.
func freeSpace(dir string) (uint64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	return stat.Bavail * uint64(stat.Bsize), err
}

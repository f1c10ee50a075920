//go:build unix

package digest

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nonBlock prevents the opening of a pipe from waiting for its other end.
const nonBlock = syscall.O_NONBLOCK

// Times returns a file's modification time and its status change time.
func Times(path string) (modified, changed time.Time, err error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return time.Time{}, time.Time{}, err
	}
	return time.Unix(stat.Mtim.Unix()), time.Unix(stat.Ctim.Unix()), nil
}

func stateAt(path string) (string, time.Time) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return "missing", time.Time{}
	}
	return describe(&stat), time.Unix(stat.Ctim.Unix())
}

// StateOf is [State] for an open file.
func StateOf(f *os.File) (string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return "", err
	}
	return describe(&stat), nil
}

func describe(stat *unix.Stat_t) string {
	return fmt.Sprint(stat.Size, " ", stat.Mtim.Nano(), " ", stat.Ctim.Nano(), " ", stat.Dev, " ", stat.Ino)
}

// Owner returns the user who owns a file.
func Owner(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }

// IsOurs reports whether a file belongs to this user or to root.
func IsOurs(info fs.FileInfo) bool {
	return Owner(info) == uint32(os.Geteuid()) || Owner(info) == 0
}

// OthersCanWrite reports whether any of the permission bits is set.
func OthersCanWrite(info fs.FileInfo, bits fs.FileMode) bool { return info.Mode().Perm()&bits != 0 }

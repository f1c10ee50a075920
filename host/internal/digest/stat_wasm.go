package digest

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// nonBlock is empty: there are no pipes.
const nonBlock = 0

// Times returns a file's modification time and its status change time, which are
// the same here.
func Times(path string) (modified, changed time.Time, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	return info.ModTime(), info.ModTime(), nil
}

func stateAt(path string) (string, time.Time) {
	info, err := os.Stat(path)
	if err != nil {
		return "missing", time.Time{}
	}
	return describe(info), info.ModTime()
}

// StateOf is [State] for an open file.
func StateOf(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	return describe(info), nil
}

func describe(info fs.FileInfo) string {
	return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano(), " ", info.Sys().(*syscall.Stat_t).Ino)
}

// Owner returns 0 for every file: there are no users.
func Owner(fs.FileInfo) uint32 { return 0 }

// IsOurs is true for every file, see [Owner].
func IsOurs(fs.FileInfo) bool { return true }

// OthersCanWrite is false for every file, see [Owner].
func OthersCanWrite(fs.FileInfo, fs.FileMode) bool { return false }

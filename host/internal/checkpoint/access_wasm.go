package checkpoint

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// nonBlock is empty: there are no pipes.
const nonBlock = 0

// checkWritable does nothing: the first write fails instead.
func checkWritable(string) error { return nil }

// openFile opens a file that can be renamed and removed while it is open.
func openFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

// owned has the locked files by file number. There is only one process: its
// parent, the page or the runtime, keeps others out of its files.
var owned sync.Map

// lockFile makes the caller the owner of f until releaseFile. The error is a
// [*InUseError] if another open file owns it.
func lockFile(f *os.File, path string) error {
	id, err := fileID(f)
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	if _, locked := owned.LoadOrStore(id, f); locked {
		return &InUseError{Path: path}
	}
	return nil
}

// releaseFile closes f, and releases the lock if f has one.
func releaseFile(f *os.File) error {
	if id, err := fileID(f); err == nil {
		owned.CompareAndDelete(id, f)
	}
	return f.Close()
}

// lockOwner reports whether another open file owns f.
func lockOwner(f *os.File) (pid int, locked bool, err error) {
	id, err := fileID(f)
	if err != nil {
		return 0, false, err
	}
	_, locked = owned.Load(id)
	return 0, locked, nil
}

func fileID(f *os.File) (uint64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}

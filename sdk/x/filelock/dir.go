package filelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// dirLock is the file in a [Dir] that is locked.
const dirLock = "process.lock"

// Dir is a directory for the files of this process, accessible only to its owner. It is
// locked while the process runs.
type Dir struct {
	Path string
	lock *os.File
}

// MakeDir creates a directory in base whose name begins with prefix, and removes the directories of killed processes.
// The caller removes it.
func MakeDir(base, prefix string) (*Dir, error) {
	removeStale(base, prefix)
	// The name changes once the lock is held: before that, another process that removes
	// stale directories could remove it.
	path, err := os.MkdirTemp(base, "."+prefix) // mode 0700
	if err != nil {
		return nil, err
	}
	named := filepath.Join(filepath.Dir(path), strings.TrimPrefix(filepath.Base(path), "."))
	if runtime.GOOS == "windows" { // later the open file would prevent it
		if err := os.Rename(path, named); err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
		path = named
	}
	lock, err := Open(filepath.Join(path, dirLock))
	if err == nil && path != named {
		err = os.Rename(path, named)
	}
	if err != nil {
		os.RemoveAll(path)
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Dir{named, lock}, nil
}

// Remove removes the directory before its lock is released, except on Windows, where an
// open file cannot be removed. It can be repeated after an error.
func (d *Dir) Remove() error {
	if runtime.GOOS == "windows" {
		d.lock.Close()
	}
	// The lock last: a directory without it is not known to be stale.
	entries, _ := os.ReadDir(d.Path) // it may be removed already
	for _, e := range entries {
		if e.Name() != dirLock {
			_ = os.RemoveAll(filepath.Join(d.Path, e.Name())) // below, too
		}
	}
	err := os.RemoveAll(d.Path)
	d.lock.Close()
	return err
}

// removeStale removes the directories of this user's processes that were killed. A process
// that is starting may not have a lock yet, so a new directory is kept for a minute.
func removeStale(base, prefix string) {
	entries, _ := os.ReadDir(base) // MkdirTemp reports the error
	for _, entry := range entries {
		fresh := strings.HasPrefix(entry.Name(), "."+prefix)
		if entry.IsDir() && (fresh || strings.HasPrefix(entry.Name(), prefix)) {
			removeIfStale(filepath.Join(base, entry.Name()), fresh)
		}
	}
}

func removeIfStale(path string, fresh bool) {
	info, err := os.Lstat(path)
	if err != nil || !Owned(info) || (fresh && time.Since(info.ModTime()) < time.Minute) {
		return
	}
	lock, err := os.OpenFile(filepath.Join(path, dirLock), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		_ = os.Remove(path) // only if it is empty
	}
	if err != nil {
		return
	}
	defer lock.Close()
	if TryLock(lock) == nil {
		_ = (&Dir{path, lock}).Remove() // the next process tries again
	}
}

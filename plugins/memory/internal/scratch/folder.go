package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

const (
	prefix = "tea-memory-"
	// lockName is a file that is locked while the process of a folder runs.
	lockName = "process.lock"
	// maxTries bounds the new folders that other processes remove before they are
	// locked, because they take them for folders of ended processes.
	maxTries = 100
)

// Folder is a folder for files of this process, which its user removes. The zero
// value is ready for use, also concurrently. The first use creates the folder and
// removes the folders of killed processes.
type Folder struct {
	mu   sync.Mutex
	path string
	lock *os.File
}

// Path returns the path of the folder.
func (f *Folder) Path() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for try := 0; f.path == ""; try++ {
		if try == 0 {
			removeLeft()
		}
		if err := f.create(); err != nil && (try == maxTries || !errors.Is(err, fs.ErrNotExist)) {
			return "", store.SystemError(err)
		}
	}
	return f.path, nil
}

// create leaves path empty, or fails with fs.ErrNotExist, if another process removed
// the folder before it was locked.
func (f *Folder) create() error {
	path, err := os.MkdirTemp("", prefix) // mode 0700
	if err != nil {
		return err
	}
	lock, err := filelock.Open(filepath.Join(path, lockName))
	if errors.Is(err, filelock.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err = os.Stat(lock.Name()); err != nil {
		return errors.Join(err, lock.Close())
	}
	f.path, f.lock = path, lock
	return nil
}

// Remove removes the folder. The next Path creates another.
func (f *Folder) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" {
		return nil
	}
	path, lock := f.path, f.lock
	f.path, f.lock = "", nil
	// Unlock first, since Windows does not remove open files.
	return store.SystemError(errors.Join(lock.Close(), os.RemoveAll(path)))
}

// removeLeft removes the folders of ended processes. Folders of other users
// cannot be opened.
func removeLeft() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*")) // the pattern is valid
	for _, path := range left {
		lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) { // killed before it was locked, or about to be
			_ = os.Remove(path) // only if it is empty
		}
		if err != nil {
			continue
		}
		locked := filelock.TryLock(lock) == nil
		if locked && runtime.GOOS == "windows" { // which does not remove open files
			_ = lock.Close()
		}
		if locked {
			_ = os.RemoveAll(path) // the next process tries again
		}
		_ = lock.Close()
	}
}

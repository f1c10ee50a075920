package scratch

import (
	"os"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

// Folder is a folder for files of this process, which its user removes. The zero
// value is ready for use, also concurrently. The first use creates the folder and
// removes the folders of killed processes.
type Folder struct {
	mu  sync.Mutex
	dir *filelock.Dir
}

// Path returns the path of the folder.
func (f *Folder) Path() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir == nil {
		dir, err := filelock.MakeDir(os.TempDir(), "tea-memory-")
		if err != nil {
			return "", store.SystemError(err)
		}
		f.dir = dir
	}
	return f.dir.Path, nil
}

// Remove removes the folder. The next Path creates another.
func (f *Folder) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir == nil {
		return nil
	}
	dir := f.dir
	f.dir = nil
	return store.SystemError(dir.Remove())
}

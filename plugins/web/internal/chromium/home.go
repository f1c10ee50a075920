package chromium

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

// home is the directory of a browser: its profile and its temporary files. A file in
// it is locked while this process runs, so that other processes can recognize
// directories that were left behind.
type home struct {
	dir  string
	lock *os.File
}

// homePattern is the name of a home in the directory for temporary files.
const homePattern = "tea-chromium-*"

// lockName is the locked file of a home.
const lockName = "lock"

// maxBase is the maximum path length of a directory for temporary files: Chromium
// creates a socket below it, whose path is limited to 103 characters on some systems.
const maxBase = 30

// baseDir is the directory for temporary files, or /tmp if its path is too long.
func baseDir() string {
	base := os.TempDir()
	if info, err := os.Stat("/tmp"); len(base) > maxBase && err == nil && info.IsDir() {
		return "/tmp"
	}
	return base
}

// makeHome makes a home, and removes those that killed processes left.
func makeHome() (*home, error) {
	left, _ := filepath.Glob(filepath.Join(baseDir(), homePattern)) // the pattern is valid
	for _, dir := range left {
		removeLeft(dir)
	}
	dir, err := os.MkdirTemp(baseDir(), homePattern)
	if err != nil {
		return nil, tea.AsError(fmt.Errorf("make a directory for Chromium: %w", err))
	}
	h := &home{dir: dir}
	if h.lock, err = filelock.Open(filepath.Join(dir, lockName)); err != nil {
		os.RemoveAll(dir)
		return nil, tea.AsError(fmt.Errorf("make a directory for Chromium: %w", err))
	}
	return h, nil
}

// removeLeft removes a home unless a process uses it.
func removeLeft(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return // it is being made, or belongs to another user
	}
	defer f.Close()
	if filelock.TryLock(f) == nil {
		os.RemoveAll(dir)
	}
}

// removeTimeout bounds how long killed processes can delay the removal of their
// files.
const removeTimeout = 5 * time.Second

// remove removes the home after its browser has ended. A process that is ending may
// still write files.
func (h *home) remove() {
	for deadline := time.Now().Add(removeTimeout); os.RemoveAll(h.dir) != nil && time.Now().Before(deadline); {
		<-time.After(20 * time.Millisecond)
	}
	h.lock.Close()
}

package subproc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

const (
	runDirPrefix = "tea-plugins-"
	// newPrefix is the prefix of a directory's name until its lock is held.
	newPrefix = "." + runDirPrefix
	lockName  = "host.lock"
	// socketSuffix is the length of the suffix that go-plugin adds for a socket:
	// "/plugin-dirNNNNNNNNNN/pluginNNNNNNNNNN".
	socketSuffix = 2 * (1 + len("plugin-dir") + 10)
	// maxSocket is the maximum path length of a Unix socket on all systems.
	maxSocket = 103
)

// runDir is the directory of one host's sockets, accessible only to its owner. The host
// holds a lock on a file in it while it runs. A directory with a free lock belonged to a
// host that was killed; the next start removes it.
type runDir struct {
	path string
	lock *os.File
}

// newRunDir creates the directory in the first usable one of bases, and removes the
// directories of killed hosts there.
func newRunDir(bases []string) (*runDir, error) {
	var errs []error
	for _, base := range bases {
		if len(base)+1+len(runDirPrefix)+10+socketSuffix > maxSocket {
			errs = append(errs, fmt.Errorf("%s is too long for a socket's path", base))
			continue
		}
		removeStale(base)
		dir, err := makeRunDir(base)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("make a directory for plugin sockets: %w", errors.Join(errs...))
}

// runBases returns the possible parents of the directory, in order of preference.
func runBases() []string {
	var bases []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		bases = append(bases, dir)
	}
	return append(bases, os.TempDir(), "/tmp")
}

// makeRunDir renames the directory once the lock is held: before that, another host that
// removes stale directories could remove it.
func makeRunDir(base string) (*runDir, error) {
	path, err := os.MkdirTemp(base, newPrefix) // mode 0700
	if err != nil {
		return nil, err
	}
	named := filepath.Join(base, strings.TrimPrefix(filepath.Base(path), "."))
	if runtime.GOOS == "windows" { // later the open file would prevent it
		if err := os.Rename(path, named); err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
		path = named
	}
	lock, err := filelock.Open(filepath.Join(path, lockName))
	if err == nil && path != named {
		err = os.Rename(path, named)
	}
	if err != nil {
		os.RemoveAll(path)
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &runDir{path: named, lock: lock}, nil
}

func (d *runDir) remove() error { return removeLocked(d.path, d.lock) }

// removeLocked removes a directory before its lock is released, except on
// Windows, where an open file cannot be removed.
func removeLocked(path string, lock *os.File) error {
	if runtime.GOOS == "windows" {
		lock.Close()
	}
	err := os.RemoveAll(path)
	lock.Close()
	return err
}

// removeStale removes the directories of this user's dead hosts. A host that is starting
// may not have a lock yet, so a new directory is kept for a minute.
func removeStale(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, entry := range entries {
		named, fresh := strings.HasPrefix(entry.Name(), runDirPrefix), strings.HasPrefix(entry.Name(), newPrefix)
		if entry.IsDir() && (named || fresh) {
			removeIfStale(filepath.Join(base, entry.Name()), fresh)
		}
	}
}

func removeIfStale(path string, fresh bool) {
	info, err := os.Lstat(path)
	if err != nil || !ownedByUs(info) || (fresh && time.Since(info.ModTime()) < time.Minute) {
		return
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		os.RemoveAll(path)
		return
	}
	if err != nil {
		return
	}
	defer lock.Close()
	if filelock.TryLock(lock) == nil {
		_ = removeLocked(path, lock) // the next start retries
	}
}

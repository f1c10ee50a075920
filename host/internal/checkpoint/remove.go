package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Remove deletes a run and its events, whatever its status; a [*LockedError]
// where it is in use. run is what [Store.Find] takes.
func (s *Store) Remove(run string) error {
	path, err := s.Find(run)
	if err != nil {
		return err
	}
	id := strings.TrimSuffix(filepath.Base(path), journalSuffix)
	for _, path := range []string{path, s.EventsPath(id)} {
		if err := removeOwned(path, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove run %s: %w", id, err)
		}
	}
	return nil
}

// errChanged says that a file is not what it was when it was chosen.
var errChanged = errors.New("the file has changed")

// removeOwned deletes a file after having become its owner, so that nobody
// uses it. With before, it must not have changed since; errChanged otherwise.
func removeOwned(path string, before fs.FileInfo) error {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = releaseFile(f) }()
	if err := lockFile(f, path); err != nil {
		return err
	}
	if err := checkStillThere(f, path); err != nil {
		return err
	}
	if before != nil {
		now, err := f.Stat()
		if err != nil {
			return err
		}
		if now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()) {
			return errChanged
		}
	}
	return os.Remove(path)
}

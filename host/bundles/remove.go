package bundles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// Remove removes a plugin with all its versions.
func (s *Store) Remove(name string) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	names, err := s.names()
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return &NotInstalledError{Name: name}
	}
	if err := os.Remove(s.link(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := atomicfile.SyncDir(s.plugins); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(s.historyFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := atomicfile.SyncDir(s.historyDir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = s.sweep()
	return err
}

// Swept describes what [Store.GC] has removed.
type Swept struct {
	// Entries are the versions of plugins.
	Entries []*Entry
	// Bytes is the size of all removed files.
	Bytes int64
}

// GC removes the versions of each plugin except the active one and the last keep
// intact ones that were active before, and leftovers of interrupted installations.
func (s *Store) GC(keep int) (Swept, error) {
	unlock, err := s.lock()
	if err != nil {
		return Swept{}, err
	}
	defer unlock()
	names, err := s.names()
	if err != nil {
		return Swept{}, err
	}
	for _, name := range names {
		active, err := s.active(name)
		if err != nil {
			return Swept{}, err
		}
		all, err := s.history(name, active) // for a damaged history only the active version is known
		kept := []string{}
		if at := slices.Index(all, active); at >= 0 {
			kept = slices.DeleteFunc(slices.Clone(all[:at]), func(id string) bool { return !s.isIntact(id) })
			kept = append(kept[max(0, len(kept)-keep):], active)
		}
		if len(kept) == len(all) && err == nil {
			continue
		}
		if err := s.writeHistory(name, kept); err != nil {
			return Swept{}, err
		}
	}
	return s.sweep()
}

// isIntact reports whether a version is complete, so that a rollback can return
// to it.
func (s *Store) isIntact(id string) bool {
	e, err := s.entry(id)
	return err == nil && len(e.check()) == 0
}

// sweep removes the entries that no history contains, and incomplete ones. The
// caller holds the lock.
func (s *Store) sweep() (Swept, error) {
	names, err := s.names()
	if err != nil {
		return Swept{}, err
	}
	used := map[string]bool{}
	for _, name := range names {
		active, err := s.active(name)
		if err != nil {
			return Swept{}, err
		}
		ids, _ := s.history(name, active) // for a damaged history only the active version is known
		for _, id := range ids {
			used[id] = true
		}
	}
	entries, err := readDir(s.root)
	if err != nil {
		return Swept{}, err
	}
	var swept Swept
	for _, found := range entries {
		id := found.Name()
		if !isID(id) || used[id] {
			continue
		}
		if e, err := s.entry(id); err == nil {
			swept.Entries = append(swept.Entries, e)
		}
		if err := s.discard(id); err != nil {
			return swept, err
		}
	}
	swept.Bytes, err = s.tidy()
	return swept, err
}

// discard removes an entry from use. It renames the entry to a name that is not an
// ID, so that a crash cannot leave a partial entry.
func (s *Store) discard(id string) error {
	trash := filepath.Join(s.root, trashPrefix+id)
	if err := removeTree(trash); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(s.root, id), trash); err != nil {
		return err
	}
	return atomicfile.SyncDir(s.root)
}

// tidy removes incomplete entries and returns their size.
func (s *Store) tidy() (int64, error) {
	entries, err := readDir(s.root)
	if err != nil {
		return 0, err
	}
	var bytes int64
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, stagingPrefix) || strings.HasPrefix(name, trashPrefix) {
			path := filepath.Join(s.root, name)
			bytes += sizeOf(path)
			if err := removeTree(path); err != nil {
				return bytes, err
			}
		}
	}
	return bytes, errors.Join(
		removeAll(s.plugins, func(name string) bool { return strings.HasPrefix(name, linkPrefix) }),
		removeAll(s.historyDir(), atomicfile.IsTemporary))
}

// removeAll removes the matching files of a directory.
func removeAll(dir string, match func(name string) bool) error {
	entries, err := readDir(dir)
	for _, e := range entries {
		if match(e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

func sizeOf(dir string) int64 {
	var bytes int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // the size is for information
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// removeTree removes a directory whose parts may be read-only. It need not exist.
func removeTree(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	}) // the removal returns the error
	return os.RemoveAll(dir)
}

// Verify reads the whole store and returns the differences from what was installed.
func (s *Store) Verify() []error {
	var faults []error
	names, err := s.names()
	if err != nil {
		return []error{err}
	}
	reported, active := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		id, err := s.active(name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		active[id] = true
		ids, err := s.history(name, id)
		if err != nil {
			faults = append(faults, err)
		}
		for _, id := range ids {
			if _, err := s.entry(id); err != nil {
				reported[id] = true
				faults = append(faults, advise(err, active[id]))
			}
		}
	}
	entries, err := readDir(s.root)
	if err != nil {
		return append(faults, err)
	}
	for _, found := range entries {
		id := found.Name()
		if !isID(id) || reported[id] {
			continue
		}
		e, err := s.entry(id)
		if err != nil {
			faults = append(faults, advise(err, active[id]))
			continue
		}
		for _, fault := range e.check() {
			faults = append(faults, advise(fault, active[id]))
		}
	}
	return append(faults, s.strayLinks()...)
}

// advise adds a remedy to the fault of a version that is not active.
func advise(fault error, active bool) error {
	if active {
		return fault
	}
	return fmt.Errorf("%w; `tea plugin gc` removes this version, which is not active", fault)
}

// strayLinks returns the dangling links.
func (s *Store) strayLinks() []error {
	links, err := readDir(s.plugins)
	if err != nil {
		return []error{err}
	}
	var faults []error
	for _, e := range links {
		path := filepath.Join(s.plugins, e.Name())
		if e.Type() != fs.ModeSymlink || !strings.HasPrefix(e.Name(), binaryPrefix) {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			faults = append(faults, &ChangedError{Plugin: strings.TrimPrefix(e.Name(), binaryPrefix), Path: path})
		}
	}
	return faults
}

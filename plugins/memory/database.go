package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// databaseFile is the name of an engine's database in its folder. The engine may
// be missing from this build.
func databaseFile(dialect store.Dialect) string { return "memory." + string(dialect) }

// madeWith returns the engines that have a database in a folder.
func madeWith(dir string) (all []store.Dialect) {
	for _, dialect := range []store.Dialect{store.DuckDB, store.SQLite} {
		if info, err := os.Stat(filepath.Join(dir, databaseFile(dialect))); err == nil && info.Size() > 0 {
			all = append(all, dialect)
		}
	}
	return all
}

// begunWith returns the engines that have other files of a database in a folder, as a
// process that is killed while it creates the database leaves them.
func begunWith(dir string) (all []store.Dialect) {
	entries, _ := os.ReadDir(dir) // opening the database reports the error
	for _, dialect := range []store.Dialect{store.DuckDB, store.SQLite} {
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), databaseFile(dialect)) }) {
			all = append(all, dialect)
		}
	}
	return all
}

// readOnly returns the reason why the memory in a folder is read-only, "" if it
// is writable.
func (s Settings) readOnly(dir string) (reason string, err error) {
	made := madeWith(dir)
	switch {
	case s.ReadOnly && len(made) == 0:
		return "", tea.Errorf(tea.NotFound, "there is no memory in %s, and settings.memory.read_only prevents creating one", dir)
	case s.ReadOnly:
		return "settings.memory.read_only is set; remove it to write", nil
	case len(made) == 0:
		return "", nil
	}
	file, err := os.CreateTemp(dir, ".writable-")
	if err == nil {
		err = errors.Join(file.Close(), os.Remove(file.Name()))
	}
	for _, dialect := range made {
		if err != nil {
			break
		}
		if file, err = os.OpenFile(filepath.Join(dir, databaseFile(dialect)), os.O_RDWR, 0); err == nil {
			err = file.Close()
		}
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return "", nil // opening the database reports other problems
	}
	return fmt.Sprintf("its folder cannot be written (%v); mount it for writing, change its permissions, or set another settings.memory.path", err), nil
}

package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// databaseFile is the name of an engine's database in its folder. The build can
// lack the engine.
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

// readOnly says why the memory in a folder is only read; "" = it is written.
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
		return "", nil // opening the database says what else is wrong
	}
	return fmt.Sprintf("its folder cannot be written (%v); mount it for writing, change its permissions, or set another settings.memory.path", err), nil
}

// driver returns the driver for the memory in a folder. A memory is only opened
// by the engine that created it: another engine would find no rows and remove
// the files as unused.
func (s Settings) driver(dir string) (engine.Driver, error) {
	wanted, made := store.Dialect(s.Engine), madeWith(dir)
	switch {
	case wanted == "" && len(made) > 1:
		return nil, tea.Errorf(tea.ValidationError, "there is more than one memory in %s: %s and %s; choose one with settings.memory.engine", dir, databaseFile(made[0]), databaseFile(made[1]))
	case wanted == "" && len(made) == 1:
		driver, err := driverOf(made[0])
		if err != nil {
			return nil, tea.Errorf(tea.DependencyMissing, "the memory in %s was created by %s: %s, and another settings.memory.path", dir, made[0], strings.TrimPrefix(err.Error(), string(tea.DependencyMissing)+": "))
		}
		return driver, nil
	case wanted == "" && !duckdb.Available:
		wanted = store.SQLite
	case wanted == "":
		wanted = store.DuckDB
	case len(made) == 1 && made[0] != wanted:
		return nil, tea.Errorf(tea.ValidationError, "the memory in %s was created by %s and cannot be opened by %s; set settings.memory.engine: %s, or another settings.memory.path", dir, made[0], wanted, made[0])
	}
	return driverOf(wanted)
}

func driverOf(dialect store.Dialect) (engine.Driver, error) {
	if dialect == store.DuckDB {
		return duckdb.New()
	}
	return sqlite.Driver{}, nil
}

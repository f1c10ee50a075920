package memory

import (
	"os"
	"path/filepath"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// databaseFile is the database of an engine, which this build may lack, in its
// folder.
func databaseFile(dialect store.Dialect) string { return "memory." + string(dialect) }

// madeWith are the engines that have a database in a folder.
func madeWith(dir string) (all []store.Dialect) {
	for _, dialect := range []store.Dialect{store.DuckDB, store.SQLite} {
		if info, err := os.Stat(filepath.Join(dir, databaseFile(dialect))); err == nil && info.Size() > 0 {
			all = append(all, dialect)
		}
	}
	return all
}

// driver is that of the memory in a folder. A memory is never opened by the
// engine that did not make it: that one would find no rows, and take the files
// for what a crash has left.
func (s Settings) driver(dir string) (engine.Driver, error) {
	wanted, made := store.Dialect(s.Engine), madeWith(dir)
	switch {
	case wanted == "" && len(made) > 1:
		return nil, tea.Errorf(tea.ValidationError, "there is more than one memory in %s: %s and %s; say which by settings.memory.engine", dir, databaseFile(made[0]), databaseFile(made[1]))
	case wanted == "" && len(made) == 1:
		driver, err := driverOf(made[0])
		if err != nil {
			return nil, tea.Errorf(tea.DependencyMissing, "the memory in %s was made with %s: %s, and another settings.memory.path", dir, made[0], strings.TrimPrefix(err.Error(), string(tea.DependencyMissing)+": "))
		}
		return driver, nil
	case wanted == "" && !duckdb.Available:
		wanted = store.SQLite
	case wanted == "":
		wanted = store.DuckDB
	case len(made) == 1 && made[0] != wanted:
		return nil, tea.Errorf(tea.ValidationError, "the memory in %s was made with %s and cannot be opened with %s; set settings.memory.engine: %s, or another settings.memory.path", dir, made[0], wanted, made[0])
	}
	return driverOf(wanted)
}

func driverOf(dialect store.Dialect) (engine.Driver, error) {
	if dialect == store.DuckDB {
		return duckdb.New()
	}
	return sqlite.Driver{}, nil
}

//go:build !wasm

package memory

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	internal "github.com/the-edge-agent/tea/plugins/memory/internal/embedded"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// defaultEngine is the engine without settings.memory.engine; "" = an embedded one.
const defaultEngine = ""

// inPage is set in a browser. A page opens only what [actions] needs, and keeps a
// memory open without users: a page that calls actions one by one remains its
// writer and keeps its text index loaded.
const inPage = false

// dataFolder is where the memory is without settings.memory.path and
// XDG_DATA_HOME; "" = below the home directory.
const dataFolder = ""

// resolvePlatform replaces settings that have a special meaning on this platform.
func (s *settings) resolvePlatform() error { return nil }

// driver returns the driver for the memory in a folder. A memory is only opened
// by the engine that created it: another engine would find no rows and remove
// the files as unused.
func (s Settings) driver(dir string) (engine.Driver, error) {
	wanted, made := store.Dialect(s.Engine), madeWith(dir)
	if begun := begunWith(dir); wanted == "" && len(made) == 0 && len(begun) == 1 {
		made = begun
	}
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

func (s Settings) limits() engine.Limits {
	return engine.Limits{Connections: s.Connections, Threads: s.Threads, MemoryBytes: s.MemoryMB << 20, SpillDir: s.SpillDir}
}

func (f *folder) openEmbedded(ctx context.Context, overrun func(growing bool)) error {
	driver, err := f.settings.driver(f.dir)
	if err != nil {
		return err
	}
	if f.readOnly, err = f.settings.readOnly(f.dir); err != nil {
		return err
	}
	opened, err := engine.Open(ctx, engine.Options{
		Dir: f.dir, Driver: driver, Limits: f.settings.limits(), LockTimeout: f.settings.lockTimeout(), Warmup: f.settings.warmup(), Logger: slog.Default(), Overrun: overrun,
		ReadOnly: f.readOnly,
	})
	if err != nil {
		return err
	}
	e := &embedded{engine: opened}
	if e.blobs, err = blob.Open(filepath.Join(f.dir, "blobs")); err != nil {
		return errors.Join(err, e.engine.Close())
	}
	config := f.config()
	config.Engine, config.Blobs = string(opened.Dialect()), e.blobs
	e.driver = internal.New(opened, config, f.settings.Vector.options())
	s := records.OpenFinder(e.driver, config)
	docs := e.driver.Documents(s.Metadata)
	managed := catalog.NewManaged(docs, f.clock)
	e.tables = tabular.New(tabular.Options{Engine: opened, Documents: docs, Catalog: managed, Dir: filepath.Join(f.dir, "tables"), ReadOnly: f.readOnly != "", Logger: slog.Default()})
	s.Acknowledged, s.SQL, s.Tables, s.Close = "local", opened, e.tables, e.close
	s.Replica = deviceRecords{s.Replica.(syncing.Device), f}
	f.embedded, f.catalog = e, managed.Catalog
	f.use(s)
	f.families(opened.Identity, func() (string, error) { return filepath.Join(f.dir, "files-index"), nil }, e.driver.FileContents())
	if f.readOnly == "" {
		f.sweeper = f.sweeps()
	}
	return nil
}

func actions() []tea.Action {
	return slices.Concat(
		shortTermActions(),
		summarizeActions(),
		ltmActions(),
		vectorActions(),
		recallActions(),
		contextActions(),
		sessionActions(),
		fileActions(),
		cloudActions(),
		searchActions(),
		catalogActions(),
		dataActions(),
		sqlActions(),
		inspectActions(),
		maintenanceActions(),
		archiveActions(),
		syncActions(),
		chunkActions(),
	)
}

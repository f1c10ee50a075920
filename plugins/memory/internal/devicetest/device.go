// Package devicetest has the embedded databases of this build for tests, with
// faults, a clock and mounts that a test controls.
package devicetest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/embedded"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// Device is a folder with a database, blobs and a clock that the test sets. Its
// parts fail as Faults decides. The end of the test closes it.
type Device struct {
	Dir       string
	Driver    engine.Driver
	Engine    *engine.Engine
	Folder    *blob.Folder
	Documents *embedded.Documents
	Faults    *storetest.Faults
	Clock     *clock.Clock

	passed *atomic.Int64 // nanoseconds
	once   sync.Once
}

// Memory is the memory on an embedded database. Closing it closes the database, too.
type Memory struct {
	*store.Stores
	Engine *engine.Engine
	Driver *embedded.Driver
}

// Close closes the stores and the database.
func (m *Memory) Close() error {
	return errors.Join(m.LongTerm.Close(), m.Vectors.Close(), m.Stores.Close())
}

// OpenMemory opens the memory in the folder c.Dir. Options of c that are not set have the defaults of settings.
func OpenMemory(ctx context.Context, driver engine.Driver, c store.Config, search vector.Options) (*Memory, error) {
	e, err := engine.Open(ctx, engine.Options{Dir: c.Dir, Driver: driver, ReadOnly: c.ReadOnly})
	if err != nil {
		return nil, err
	}
	blobs, err := blob.Open(filepath.Join(c.Dir, "blobs"))
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	c.Blobs = blobs
	d, stores := open(e, c, search)
	stores.Close = func() error { return errors.Join(d.Close(), e.Close(), blobs.Close()) }
	return &Memory{stores, e, d}, nil
}

func open(e store.QueryEngine, c store.Config, search vector.Options) (*embedded.Driver, *store.Stores) {
	c.InlineBytes = cmp.Or(c.InlineBytes, 1024)
	if c.Now == nil {
		c.Now = clock.New().Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	d := embedded.New(e, c, search)
	return d, records.OpenFinder(d, c)
}

// Documents returns the documents of a database.
func Documents(e store.QueryEngine) *embedded.Documents {
	d, stores := open(e, store.Config{}, vector.Options{})
	return d.Documents(stores.Metadata)
}

// EachDriver runs a test on every database. It skips a database that this build
// does not include, with a message how to get it.
func EachDriver(t *testing.T, test func(t *testing.T, driver engine.Driver)) {
	t.Helper()
	t.Parallel()
	for dialect, open := range map[store.Dialect]func() (engine.Driver, error){
		store.SQLite: func() (engine.Driver, error) { return sqlite.Driver{}, nil },
		store.DuckDB: duckdb.New,
	} {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			driver, err := open()
			if err != nil {
				t.Skip(err)
			}
			test(t, driver)
		})
	}
}

// EachDevice runs a test on a device with each database of this build.
func EachDevice(t *testing.T, test func(t *testing.T, d *Device)) {
	t.Helper()
	EachDriver(t, func(t *testing.T, driver engine.Driver) { test(t, openDevice(t, driver, t.TempDir(), 0)) })
}

func openDevice(t *testing.T, driver engine.Driver, dir string, passed time.Duration) *Device {
	t.Helper()
	d := &Device{Dir: dir, Driver: driver, Faults: &storetest.Faults{}, passed: &atomic.Int64{}}
	d.Pass(passed)
	d.Clock = clock.Fixed(storetest.Start, func() time.Duration { return time.Duration(d.passed.Load()) })
	var err error
	if d.Engine, err = engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver}); err != nil {
		t.Fatal(err)
	}
	if d.Folder, err = blob.Open(filepath.Join(dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	d.Documents = Documents(d.Faults.Engine(d.Engine))
	t.Cleanup(func() { d.close(t) })
	return d
}

// Pass sets the clock to a time after storetest.Start.
func (d *Device) Pass(since time.Duration) { d.passed.Store(int64(since)) }

// Reopen closes the device and opens it again, at the same time of its clock.
func (d *Device) Reopen(t *testing.T) *Device {
	t.Helper()
	d.close(t)
	return openDevice(t, d.Driver, d.Dir, time.Duration(d.passed.Load()))
}

func (d *Device) close(t *testing.T) {
	t.Helper()
	d.once.Do(func() {
		if err := errors.Join(d.Engine.Close(), d.Folder.Close()); err != nil {
			t.Error(err)
		}
	})
}

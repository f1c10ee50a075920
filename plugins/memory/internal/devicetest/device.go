// Package devicetest has the embedded databases of this build for tests, with
// faults, a clock and mounts that a test controls.
package devicetest

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
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
	Documents *documents.Documents
	Faults    *storetest.Faults
	Clock     *clock.Clock

	passed *atomic.Int64 // nanoseconds
	once   sync.Once
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
	d.Documents = documents.New(d.Faults.Engine(d.Engine))
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

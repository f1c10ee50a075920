package longterm_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// backend is a memory that also closes its engine.
type backend struct {
	*longterm.Memory
	engine *engine.Engine
	blobs  *blob.Folder
}

func (b *backend) Close() error {
	return errors.Join(b.Memory.Close(), b.engine.Close(), b.blobs.Close())
}

// clockOf returns a clock that shows the time of a suite.
func clockOf(now func() time.Time) *clock.Clock {
	start := now()
	return clock.Fixed(start, func() time.Duration { return now().Sub(start) })
}

func TestLongTermMemoryConformance(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		var opened storetest.Opened[*backend]
		var dirs storetest.Dirs
		storetest.LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory {
			return opened.Again(t, func() (*backend, error) {
				dir := dirs.Of(t)
				e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver})
				if err != nil {
					return nil, err
				}
				blobs, err := blob.Open(filepath.Join(dir, "blobs"))
				if err != nil {
					return nil, errors.Join(err, e.Close())
				}
				m := longterm.New(longterm.Options{Engine: e, Blobs: blobs, Clock: clockOf(now), IndexDir: filepath.Join(dir, "index"), Language: "english"})
				return &backend{m, e, blobs}, nil
			})
		})
	})
}

package longterm_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
	"github.com/the-edge-agent/tea/plugins/memory/internal/storetest"
)

// backend is a memory that closes what it stands on.
type backend struct {
	*longterm.Memory
	engine *engine.Engine
	blobs  *blob.Folder
}

func (b *backend) Close() error {
	return errors.Join(b.Memory.Close(), b.engine.Close(), b.blobs.Close())
}

func TestLongTermMemoryConformance(t *testing.T) {
	storetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		var opened storetest.Opened[*backend]
		var dirs storetest.Dirs
		storetest.LongTermMemory(t, func(t *testing.T, clock *clock.Clock) store.LongTermMemory {
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
				m := longterm.New(longterm.Options{Engine: e, Blobs: blobs, Clock: clock, IndexDir: filepath.Join(dir, "index"), Language: "english"})
				return &backend{m, e, blobs}, nil
			})
		})
	})
}

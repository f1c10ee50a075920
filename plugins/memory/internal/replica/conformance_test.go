package replica_test

import (
	"errors"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/replica"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is an embedded memory.
type memory struct {
	*replica.Replica
	engine store.QueryEngine
	close  func() error
}

func (m *memory) Close() error { return m.close() }

func openMemory(t *testing.T, driver engine.Driver, dir string) (*memory, error) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver})
	if err != nil {
		return nil, err
	}
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	now := clock.New()
	o := replica.Options{Engine: e, Documents: documents.New(e)}
	o.Files = file.New(file.Options{Documents: o.Documents, Blobs: blobs, Clock: now})
	o.Sessions = session.New(session.Options{Documents: o.Documents, Files: o.Files, Clock: now})
	o.LongTerm = longterm.New(longterm.Options{Engine: e, Blobs: blobs, Clock: now, IndexDir: filepath.Join(dir, "index"), Language: "english"})
	o.Vectors = vectors.New(vectors.Options{Engine: e, Dir: filepath.Join(dir, "vectors")})
	o.Catalog = catalog.New(o.Documents, now)
	return &memory{replica.New(o), e, func() error {
		return errors.Join(o.LongTerm.Close(), o.Vectors.Close(), e.Close(), blobs.Close())
	}}, nil
}

func TestReplicaConformance(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		var opened storetest.Opened[*memory]
		var dirs storetest.Dirs
		storetest.Replica(t, func(t *testing.T) store.Replica {
			return opened.Again(t, func() (*memory, error) { return openMemory(t, driver, dirs.Of(t)) })
		})
	})
}

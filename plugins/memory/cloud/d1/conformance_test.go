package d1

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// databases has a database for each test.
type databases struct {
	server *server
	mu     sync.Mutex
	byTest map[string]string
}

func newDatabases(t testing.TB, n int) *databases {
	t.Helper()
	return &databases{server: startServer(t, n), byTest: map[string]string{}}
}

func (d *databases) url(t testing.TB) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byTest[t.Name()] == "" {
		d.byTest[t.Name()] = d.server.create(t)
	}
	return d.byTest[t.Name()]
}

// config returns the configuration of a test.
func config(url string) store.Config {
	return store.Config{URL: url, Timeout: time.Minute, Language: "english", InlineBytes: 1024, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
}

func (d *databases) open(t testing.TB, now func() time.Time) *store.Stores {
	t.Helper()
	return d.openWith(t, now, &servertest.Trips{})
}

func (d *databases) openWith(t testing.TB, now func() time.Time, trips *servertest.Trips) *store.Stores {
	t.Helper()
	c := config(d.url(t))
	if now != nil {
		c.Now = now
	}
	stores, err := open(c, trips.Wrap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stores.Close() })
	return stores
}

func TestLongTermMemory(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 40)
	var opened storetest.Opened[store.LongTermMemory]
	storetest.LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory {
		return opened.Again(t, func() (store.LongTermMemory, error) { return d.open(t, now).LongTerm, nil })
	})
}

func TestMetadataStore(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 40)
	storetest.MetadataStore(t, func(t *testing.T) store.MetadataStore { return d.open(t, nil).Metadata })
}

func TestVectorIndex(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 40)
	var opened storetest.Opened[store.VectorIndex]
	storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex {
		return opened.Again(t, func() (store.VectorIndex, error) { return d.open(t, nil).Vectors, nil })
	})
}

func TestBlobStorage(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 40)
	storetest.BlobStorage(t, func(t *testing.T) store.BlobStorage { return d.open(t, nil).Blobs })
}

func TestReplica(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 40)
	storetest.Replica(t, func(t *testing.T) store.Replica { return d.open(t, nil).Replica })
}

func TestTableStore(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 40)
	storetest.TableStore(t, func(t *testing.T) store.TableStore { return d.open(t, nil).Tables })
}

func TestTheGuideSaysHowTheDialectsDiffer(t *testing.T) {
	t.Parallel()
	storetest.TableDialect(t, store.SQLite, newDatabases(t, 1).open(t, nil).Tables)
}

func TestContext(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 40)
	storetest.Context(t, func(t *testing.T) *store.Stores { return d.open(t, nil) })
}

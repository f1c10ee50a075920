package firestore

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// emulator is that of all tests.
var emulator struct {
	sync.Mutex
	server *Server
}

func TestMain(m *testing.M) {
	code := m.Run()
	if emulator.server != nil {
		emulator.server.Stop()
	}
	os.Exit(code)
}

// databases has a database for each test.
type databases struct {
	server *Server
	mu     sync.Mutex
	byTest map[string]string
}

func newDatabases(t testing.TB) *databases {
	t.Helper()
	emulator.Lock()
	defer emulator.Unlock()
	if emulator.server == nil {
		emulator.server = StartServer(t)
	}
	return &databases{server: emulator.server, byTest: map[string]string{}}
}

func (d *databases) url(t testing.TB) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byTest[t.Name()] == "" {
		d.byTest[t.Name()] = d.server.Create()
	}
	return d.byTest[t.Name()]
}

// config is that of a test.
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
	return openAt(t, d.server.Address, c, trips.Wrap)
}

// openAt opens stores of an emulator.
func openAt(t testing.TB, address string, c store.Config, change func(*http.Client) *http.Client) *store.Stores {
	t.Helper()
	c.Options = []byte(`{"endpoint": "http://` + address + `"}`)
	stores, err := open(c, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stores.Close() })
	return stores
}

func (d *databases) driver(t testing.TB, c store.Config) *db {
	t.Helper()
	c.URL, c.Options = d.url(t), []byte(`{"endpoint": "http://`+d.server.Address+`"}`)
	driver, err := openDriver(c, func(h *http.Client) *http.Client { return h })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	return driver
}

func TestDriver(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	storetest.Driver(t, func(t *testing.T, c store.Config) (store.Driver, error) { t.Helper(); return d.driver(t, c), nil })
}

func TestTableStore(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	storetest.TableStore(t, func(t *testing.T) store.TableStore { return d.open(t, nil).Tables })
}

func TestTheGuideSaysHowTheDialectsDiffer(t *testing.T) {
	t.Parallel()
	storetest.TableDialect(t, store.SQLite, newDatabases(t).open(t, nil).Tables)
}

// The contents of files are those of settings.memory.blobs.
func TestBlobStorage(t *testing.T) {
	t.Parallel()
	var dirs storetest.Dirs
	storetest.BlobStorage(t, func(t *testing.T) store.BlobStorage {
		blobs, err := blob.Open(filepath.Join(dirs.Of(t), "blobs"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = blobs.Close() })
		c := config("firestore://none")
		c.Blobs = blobs
		return openAt(t, "127.0.0.1:1", c, (&servertest.Trips{}).Wrap).Blobs
	})
}

package bucket

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config returns the configuration of a device whose copies are in a folder.
func config(t testing.TB, s *objtest.Server, prefix, dir string, change map[string]any) store.Config {
	t.Helper()
	raw, err := json.Marshal(s.Settings)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"idle_seconds": 0.2}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for name, value := range change {
		all[name] = value
	}
	if raw, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	level := slog.LevelWarn
	return store.Config{
		URL: s.Address + "/" + prefix, Options: raw, Timeout: time.Minute, Language: "english", InlineBytes: 1024, Dir: dir, Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level})),
	}
}

// openStores opens the memory; the end of the test closes it.
func openStores(t testing.TB, c store.Config) *store.Stores {
	t.Helper()
	stores, err := Backend().Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stores.Close(); err != nil {
			t.Error(err)
		}
	})
	return stores
}

// prefixOf is a prefix in the bucket for a test.
func prefixOf(t testing.TB) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '/' {
			return r
		}
		return '-'
	}, t.Name())
}

// servers starts each kind of server and runs a test with it.
func servers(t *testing.T, test func(t *testing.T, s *objtest.Server)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB) *objtest.Server{"s3": objtest.S3, "gcs": objtest.GCS, "azure": objtest.Azure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// opened is a part of an open memory, which it closes with itself.
type opened struct{ *store.Stores }

func (o opened) Close() error {
	return errors.Join(o.LongTerm.Close(), o.Vectors.Close(), o.Stores.Close())
}

// suites opens memories for the suites. Reopening closes what was open.
type suites struct {
	s    *objtest.Server
	open storetest.Opened[opened]
	mu   sync.Mutex
	dirs map[string]string
}

func (x *suites) again(t *testing.T, now func() time.Time) *store.Stores {
	t.Helper()
	return x.open.Again(t, func() (opened, error) {
		x.mu.Lock()
		if x.dirs == nil {
			x.dirs = map[string]string{}
		}
		if x.dirs[t.Name()] == "" {
			x.dirs[t.Name()] = t.TempDir()
		} else if strings.Contains(t.Name(), "reopen") {
			// Another device has no copy.
			_ = os.RemoveAll(filepath.Join(x.dirs[t.Name()], "0"))
		}
		c := config(t, x.s, prefixOf(t), x.dirs[t.Name()], nil)
		x.mu.Unlock()
		if now != nil {
			c.Now = now
		}
		stores, err := Backend().Open(t.Context(), c)
		return opened{stores}, err
	}).Stores
}

func TestLongTermMemory(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *objtest.Server) {
		x := &suites{s: s}
		storetest.LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory { return x.again(t, now).LongTerm })
	})
}

func TestMetadataStore(t *testing.T) {
	t.Parallel()
	x := &suites{s: objtest.S3(t)} // the other servers differ only in conditional writes
	storetest.MetadataStore(t, func(t *testing.T) store.MetadataStore { return x.again(t, nil).Metadata })
}

func TestVectorIndex(t *testing.T) {
	t.Parallel()
	x := &suites{s: objtest.S3(t)} // the other servers differ only in conditional writes
	storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex { return x.again(t, nil).Vectors })
}

func TestReplica(t *testing.T) {
	t.Parallel()
	x := &suites{s: objtest.S3(t)} // see TestMetadataStore
	storetest.Replica(t, func(t *testing.T) store.Replica { return x.again(t, nil).Replica })
}

func TestTableStore(t *testing.T) {
	t.Parallel()
	x := &suites{s: objtest.S3(t)} // see TestMetadataStore
	storetest.TableStore(t, func(t *testing.T) store.TableStore { return x.again(t, nil).Tables })
}

func TestTheGuideSaysHowTheDialectsDiffer(t *testing.T) {
	t.Parallel()
	storetest.TableDialect(t, store.SQLite, (&suites{s: objtest.S3(t)}).again(t, nil).Tables)
}

func TestContext(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t) // see TestMetadataStore
	storetest.Context(t, func(t *testing.T) *store.Stores { return openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil)) })
}

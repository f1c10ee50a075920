package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/graph/internal/sqlite"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/storetest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestMain(m *testing.M) {
	storetest.Main(m, sqlite.Open, func(m *testing.M) { goleak.VerifyTestMain(m) })
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, sqlite.Open)
}

func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it kills processes again and again")
	storetest.Kills(t, sqlite.Open)
}

func TestFilesThatAreNotDatabases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), store.Options{Dir: dir, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "graph.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, text string) string {
		return string(whole[:at]) + text + string(whole[at+len(text):])
	}
	for name, c := range map[string]struct{ text, want string }{
		"a text":            {"This is a text, and not a database at all.", "is not a database of a graph"},
		"another program's": {changed(68, "abcd"), "is a database of another program"},
		"a newer one":       {changed(60, "\x00\x00\x00\x09"), "has format 9, which is newer"},
		"damaged":           {changed(100, strings.Repeat("\xff", 3000)), "damaged"},
		"cut":               {string(whole[:5000]), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "graph.sqlite")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			db, err := sqlite.Open(context.Background(), store.Options{Dir: dir})
			if err == nil {
				db.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("opened with %v", err)
			}
			after, err := os.ReadFile(path)
			if err != nil || string(after) != c.text {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

// BenchmarkPut compares with a row of a table without indexes, in a database of its own
// with the same durability.
func BenchmarkPut(b *testing.B) {
	db, err := sqlite.Open(b.Context(), store.Options{Dir: b.TempDir(), Create: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	own, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "own.sqlite")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		b.Fatal(err)
	}
	defer own.Close()
	if _, err := own.ExecContext(b.Context(), "CREATE TABLE entity (id TEXT PRIMARY KEY, type TEXT, properties TEXT, text TEXT, words TEXT, created INTEGER, updated INTEGER)"); err != nil {
		b.Fatal(err)
	}
	put, err := own.PrepareContext(b.Context(), "INSERT OR REPLACE INTO entity VALUES (?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	defer put.Close()
	storetest.Put(b, db, func(e store.Entity) error {
		_, err := put.ExecContext(b.Context(), e.ID, e.Type, string(e.Properties), e.Text, strings.Join(e.Words, " "), e.CreatedAt, e.UpdatedAt)
		return err
	})
}

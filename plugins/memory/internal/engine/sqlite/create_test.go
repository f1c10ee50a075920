package sqlite_test

import (
	"context"
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/schema"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

var update = flag.Bool("update", false, "make the empty database that new ones begin as")

// The places in a database's header that say how it is written and read, and
// their value for a write-ahead log; see https://www.sqlite.org/fileformat2.html.
const (
	writeVersion = 18
	readVersion  = 19
	writeAhead   = 2
)

// updateEmpty makes the empty database in memory and writes it to its file.
func updateEmpty(t *testing.T) {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := schema.Migrate(t.Context(), conn, store.SQLite, func() {}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "UPDATE tea_identity SET id = '00000000000000000000000000000000'"); err != nil {
		t.Fatal(err)
	}
	err = conn.Raw(func(inner any) error {
		image, err := inner.(interface{ Serialize() ([]byte, error) }).Serialize()
		if err != nil {
			return err
		}
		image[writeVersion], image[readVersion] = writeAhead, writeAhead
		return os.WriteFile("empty.sqlite", image, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// opened is the database in dir as the driver opens it.
func opened(t *testing.T, dir string) engine.Handles {
	t.Helper()
	handles, err := sqlite.Driver{}.Open(t.Context(), filepath.Join(dir, sqlite.Driver{}.File()), engine.Limits{Connections: 1, MemoryBytes: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = handles.Close() })
	return handles
}

// database is the database in dir with the newest tables.
func database(t *testing.T, dir string) engine.Handles {
	t.Helper()
	handles := opened(t, dir)
	conn, err := handles.Write.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := schema.Migrate(t.Context(), conn, store.SQLite, func() {}); err != nil {
		t.Fatal(err)
	}
	return handles
}

// answers are the rows of a query, the columns of each joined.
func answers(t *testing.T, db *sql.DB, query string) (found []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = v.String
		}
		found = append(found, strings.Join(texts, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestANewDatabaseIsLikeOneOfSQLite(t *testing.T) {
	if *update {
		updateEmpty(t)
		t.Skip("the empty database was made; it is compiled in by the next run")
	}
	made, own := t.TempDir(), t.TempDir()
	write(t, filepath.Join(own, "memory.sqlite"), nil) // an empty file is for SQLite to fill
	a, b := opened(t, made), database(t, own)
	for _, query := range []string{
		"SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema ORDER BY rowid",
		"SELECT version FROM tea_schema",
		"PRAGMA journal_mode", "PRAGMA page_size", "PRAGMA page_count", "PRAGMA freelist_count", "PRAGMA encoding", "PRAGMA auto_vacuum",
		"PRAGMA user_version", "PRAGMA application_id", "PRAGMA synchronous", "PRAGMA integrity_check",
	} {
		want, got := answers(t, b.Write, query), answers(t, a.Write, query)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-SQLite's own +ours; a new version of the schema needs -update):\n%s", query, diff)
		}
	}
	if got := answers(t, a.Write, "PRAGMA integrity_check"); !cmp.Equal(got, []string{"ok"}) {
		t.Errorf("integrity_check: %v", got)
	}
	if one, other := answers(t, a.Read, "SELECT id FROM tea_identity"), answers(t, b.Read, "SELECT id FROM tea_identity"); cmp.Equal(one, other) {
		t.Errorf("two databases have the identity %v", one)
	}
	if info, err := os.Stat(filepath.Join(made, "memory.sqlite")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
}

func TestFilesOfACrashDoNotPreventACreation(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, dir string){
		"half a new one": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "memory.sqlite-new"), []byte("SQLite form"))
		},
		"an empty one":            func(t *testing.T, dir string) { write(t, filepath.Join(dir, "memory.sqlite"), nil) },
		"something in the way":    func(t *testing.T, dir string) { makeDir(t, filepath.Join(dir, "memory.sqlite-new", "x")) },
		"a log that has no words": func(t *testing.T, dir string) { write(t, filepath.Join(dir, "memory.sqlite-wal"), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			leave(t, dir)
			h := database(t, dir)
			if got := answers(t, h.Read, "PRAGMA integrity_check"); !cmp.Equal(got, []string{"ok"}) {
				t.Errorf("integrity_check: %v", got)
			}
			if got := answers(t, h.Read, "SELECT count(*) FROM ltm"); !cmp.Equal(got, []string{"0"}) {
				t.Errorf("rows: %v", got)
			}
			if info, err := os.Stat(filepath.Join(dir, "memory.sqlite-new")); err == nil && !info.IsDir() {
				t.Error("the unfinished database is still there")
			}
		})
	}
}

func makeDir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestALogOfARemovedDatabaseIsNotReadIntoANewOne: its pages would be taken for
// those of the new database.
func TestALogOfARemovedDatabaseIsNotReadIntoANewOne(t *testing.T) {
	t.Parallel()
	old, dir := t.TempDir(), t.TempDir()
	h := database(t, old)
	if _, err := h.Write.ExecContext(context.Background(), "INSERT INTO ltm_gone VALUES (1, 1)"); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(old, "memory.sqlite-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if len(log) == 0 {
		t.Fatal("the write is not in the log")
	}
	write(t, filepath.Join(dir, "memory.sqlite-wal"), log)
	fresh := database(t, dir)
	if got := answers(t, fresh.Read, "SELECT count(*) FROM ltm_gone"); !cmp.Equal(got, []string{"0"}) {
		t.Errorf("rows of the old database: %v", got)
	}
	if got := answers(t, fresh.Read, "PRAGMA integrity_check"); !cmp.Equal(got, []string{"ok"}) {
		t.Errorf("integrity_check: %v", got)
	}
}

// TestAQueryFillsNoDisk: what it sorts is kept where its memory is watched, not
// in files that are not counted.
func TestAQueryFillsNoDisk(t *testing.T) {
	t.Parallel()
	h := database(t, t.TempDir())
	if got := answers(t, h.Read, "PRAGMA temp_store"); !cmp.Equal(got, []string{"2"}) {
		t.Errorf("temp_store is %v, want 2 (memory)", got)
	}
}

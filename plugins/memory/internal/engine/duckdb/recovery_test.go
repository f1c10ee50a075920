//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// opens opens the database in a folder; said is what it logs.
func opens(t *testing.T, dir, readOnly string) (e *engine.Engine, said *bytes.Buffer) {
	t.Helper()
	said = &bytes.Buffer{}
	e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: database{}, Warmup: true, ReadOnly: readOnly, Logger: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, said
}

func closes(t *testing.T, e *engine.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func writes(t *testing.T, e *engine.Engine, statement string, args ...any) {
	t.Helper()
	err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func adds(t *testing.T, e *engine.Engine, ids ...string) {
	t.Helper()
	for _, id := range ids {
		writes(t, e, "INSERT INTO documents VALUES ('k', ?, '{}', 1, 1)", id)
	}
}

// byID is what a lookup by an index finds.
func byID(t *testing.T, e *engine.Engine, id string) (found []string) {
	t.Helper()
	rows, err := e.Query(t.Context(), "SELECT id FROM documents WHERE id = ?", id)
	var one string
	if err := store.Scan(rows, err, func() { found = append(found, one) }, &one); err != nil {
		t.Fatal(err)
	}
	return found
}

// killedCopy is what a kill of the process leaves.
func killedCopy(t *testing.T, dir string) string {
	t.Helper()
	left := filepath.Join(t.TempDir(), "memory")
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return left
}

// usesAnother opens and closes a database with DuckDB's own settings, as versions
// of tea did that made a checkpoint at shutdown.
func usesAnother(t *testing.T, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("duckdb", filepath.Join(dir, "memory.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range append(statements, "SELECT 1") {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedDatabaseIsRepairedFromItsRowsAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, _ := opens(t, dir, "")
	adds(t, e, "a", "b")
	closes(t, e)
	e, _ = opens(t, dir, "")
	adds(t, e, "c", "d")
	left := killedCopy(t, dir)
	usesAnother(t, left)

	_, err := engine.Open(t.Context(), engine.Options{Dir: left, Driver: database{}, Warmup: true, ReadOnly: "a test"})
	if err == nil || !strings.Contains(err.Error(), "open it once for writing") {
		t.Errorf("opened for reading: %v, want an error that says how to repair it", err)
	}
	for i, want := range []int{1, 0} {
		e, said := opens(t, left, "")
		for _, id := range []string{"a", "b", "c", "d"} {
			if got := byID(t, e, id); len(got) != 1 || got[0] != id {
				t.Errorf("open %d: %s finds %v", i, id, got)
			}
		}
		closes(t, e)
		if n := strings.Count(said.String(), "did not have all rows of documents"); n != want {
			t.Errorf("open %d said it %d times, want %d:\n%s", i, n, want, said)
		}
	}
}

// A deleted record whose entry is still in an index was found as another one that
// got the number of its row.
func TestADeletedRecordIsNotFoundAsAnotherOneAfterAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, _ := opens(t, dir, "")
	adds(t, e, "a", "b", "c")
	closes(t, e)
	e, _ = opens(t, dir, "")
	writes(t, e, "DELETE FROM documents")
	left := killedCopy(t, dir)
	usesAnother(t, left, "CHECKPOINT")
	for _, damaged := range []string{killedCopy(t, dir), left} {
		e, _ := opens(t, damaged, "")
		adds(t, e, "x", "y", "z")
		closes(t, e)
		e, _ = opens(t, damaged, "")
		for id, want := range map[string]int{"a": 0, "b": 0, "c": 0, "x": 1, "y": 1, "z": 1} {
			if got := byID(t, e, id); len(got) != want || want == 1 && got[0] != id {
				t.Errorf("%s finds %v", id, got)
			}
		}
	}
}

func TestOnlyADatabaseThatWasNotClosedIsRecovered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "memory.duckdb")
	e, _ := opens(t, dir, "")
	adds(t, e, "a")
	closed := func(path string) bool {
		t.Helper()
		closed, err := isClosed(path)
		if err != nil {
			t.Error(err)
		}
		return closed
	}
	if closed(path) || closed(filepath.Join(killedCopy(t, dir), "memory.duckdb")) {
		t.Error("an open database is taken for a closed one")
	}
	closes(t, e)
	if !closed(path) {
		t.Error("a closed database is recovered at the next open")
	}
	e, _ = opens(t, dir, "")
	closes(t, e)
	if !closed(path) {
		t.Error("a database that was opened and closed is recovered at the next open")
	}
	usesAnother(t, dir, "INSERT INTO documents VALUES ('k', 'b', '{}', 1, 1)")
	if closed(path) {
		t.Error("a database that another program has written is not recovered")
	}
}

// TestALogWithADamagedEndIsReadUpToTheDamage zeroes, cuts and overwrites the log at
// each of its positions.
func TestALogWithADamagedEndIsReadUpToTheDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, _ := opens(t, dir, "")
	adds(t, e, "a")
	closes(t, e)
	e, _ = opens(t, dir, "")
	log := filepath.Join(dir, "memory.duckdb.wal")
	var ends []int64 // of the log after each record
	for i := range 6 {
		adds(t, e, fmt.Sprint(i))
		info, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	step := int64(61)
	if testing.Short() {
		step = 211
	}
	base := killedCopy(t, dir)
	for kind, damage := range map[string]func(from int64) []byte{
		"zeroed": func(from int64) []byte {
			return append(bytes.Clone(whole[:from]), make([]byte, int64(len(whole))-from)...)
		},
		"missing":  func(from int64) []byte { return whole[:from] },
		"extended": func(from int64) []byte { return append(bytes.Clone(whole), make([]byte, 1+from)...) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for from := int64(0); from < int64(len(whole)); from += step {
				left := killedCopy(t, base)
				if err := os.WriteFile(filepath.Join(left, "memory.duckdb.wal"), damage(from), 0o600); err != nil {
					t.Fatal(err)
				}
				e, said := opens(t, left, "")
				for i, end := range ends {
					want := 0
					if kind == "extended" || end <= from {
						want = 1
					}
					if got := byID(t, e, fmt.Sprint(i)); len(got) != want {
						t.Errorf("%s from %d: record %d, which ends at %d, finds %v", kind, from, i, end, got)
					}
				}
				adds(t, e, "later")
				again := killedCopy(t, left)
				closes(t, e)
				kept, err := filepath.Glob(filepath.Join(left, "memory.duckdb.wal.damaged-*"))
				if err != nil {
					t.Fatal(err)
				}
				if told := strings.Contains(said.String(), "a copy of the damaged log is in"); told != (len(kept) == 1) || kind == "zeroed" && !told && !bytes.Equal(damage(from), whole) {
					t.Errorf("%s from %d: kept %v, said %s", kind, from, kept, said)
				}
				e, said = opens(t, again, "")
				if got := byID(t, e, "later"); len(got) != 1 || strings.Contains(said.String(), "damaged") {
					t.Errorf("%s from %d: the next open finds %v and says %s", kind, from, got, said)
				}
				closes(t, e)
			}
		})
	}
}

func TestADamagedLogIsAnErrorWithARemedyWhereItCannotBeCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, _ := opens(t, dir, "")
	adds(t, e, "a", "b")
	for _, from := range []int{0, 20, 40} {
		left := killedCopy(t, dir)
		log := filepath.Join(left, "memory.duckdb.wal")
		whole, err := os.ReadFile(log)
		if err == nil {
			err = os.WriteFile(log, append(whole[:from:from], make([]byte, len(whole)-from)...), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.Open(t.Context(), engine.Options{Dir: left, Driver: database{}, Warmup: true, ReadOnly: "a test"})
		if err == nil || !strings.Contains(err.Error(), "open it once for writing") {
			t.Errorf("zeros from %d: %v, want an error that says how to repair it", from, err)
		}
	}
}

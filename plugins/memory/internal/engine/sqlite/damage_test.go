package sqlite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// TestALogWithADamagedEndIsReadUpToTheDamage zeroes, cuts and extends the log.
func TestALogWithADamagedEndIsReadUpToTheDamage(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	opens := func(dir string) (*engine.Engine, *bytes.Buffer) {
		said := &bytes.Buffer{}
		e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: sqlite.Driver{}, Warmup: true, Logger: slog.New(slog.NewTextHandler(said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e, said
	}
	adds := func(e *engine.Engine, id string) {
		err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO documents VALUES ('k', ?, '{}', 1, 1)", id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(e *engine.Engine, id string) bool {
		n, err := store.Int(e.Query(t.Context(), "SELECT count(*) FROM documents WHERE id = ?", id))
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	killed := func(dir string) string {
		left := filepath.Join(t.TempDir(), "memory")
		if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(left, "memory.sqlite-shm")); err != nil {
			t.Fatal(err)
		}
		return left
	}
	dir := t.TempDir()
	e, _ := opens(dir)
	log := filepath.Join(dir, "memory.sqlite-wal")
	var ends []int
	var whole []byte
	for i := range 6 {
		adds(e, fmt.Sprint(i))
		var err error
		if whole, err = os.ReadFile(log); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, len(whole))
	}
	base := killed(dir)
	for kind, damage := range map[string]func(from int) []byte{
		"zeroed":   func(from int) []byte { return append(bytes.Clone(whole[:from]), make([]byte, len(whole)-from)...) },
		"missing":  func(from int) []byte { return whole[:from] },
		"extended": func(from int) []byte { return append(bytes.Clone(whole), make([]byte, 512+from)...) },
	} {
		for from := 0; from < len(whole)-512; from += len(whole) / 40 {
			left := killed(base)
			if err := os.WriteFile(filepath.Join(left, "memory.sqlite-wal"), damage(from), 0o600); err != nil {
				t.Fatal(err)
			}
			e, said := opens(left)
			for i, end := range ends {
				if want := kind == "extended" || end <= from; has(e, fmt.Sprint(i)) != want {
					t.Errorf("%s from %d of %d: record %d, which ends at %d, is there: %v", kind, from, len(whole), i, end, !want)
				}
			}
			adds(e, "later")
			again := killed(left)
			kept, err := filepath.Glob(filepath.Join(left, "memory.sqlite-wal.damaged-*"))
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.Contains(said.String(), "a copy of the damaged log is in"); told != (len(kept) == 1) || told != (kind != "missing") {
				t.Errorf("%s from %d: kept %v, said %s", kind, from, kept, said)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e, said = opens(again)
			if !has(e, "later") || strings.Contains(said.String(), "damaged") {
				t.Errorf("%s from %d: the next open says %s", kind, from, said)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFlippedByteInTheLogLosesNothingSilently changes bytes of the log's header, and of the
// header and the page of each frame.
func TestFlippedByteInTheLogLosesNothingSilently(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	dir := t.TempDir()
	e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: sqlite.Driver{}, Warmup: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var whole []byte
	var ends []int
	for i := range 3 {
		err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO documents VALUES ('k', ?, '{}', 1, 1)", fmt.Sprint(i))
			return err
		})
		if err == nil {
			whole, err = os.ReadFile(filepath.Join(dir, "memory.sqlite-wal"))
		}
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, len(whole))
	}
	const header, frameHeader = 32, 24
	frame := frameHeader + int(binary.BigEndian.Uint32(whole[8:]))
	var positions []int
	for at := range header {
		positions = append(positions, at)
	}
	for at := header; at < ends[1]; at += frame {
		for _, i := range []int{0, 5, 8, 15, 16, 23, 30, frame - 1} {
			positions = append(positions, at+i)
		}
	}
	base := filepath.Join(t.TempDir(), "memory")
	if err := os.CopyFS(base, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, at := range positions {
		for _, mask := range []byte{0x01, 0xff} {
			left := filepath.Join(t.TempDir(), "memory")
			damaged := bytes.Clone(whole)
			damaged[at] ^= mask
			err := os.CopyFS(left, os.DirFS(base))
			if err == nil {
				err = errors.Join(os.RemoveAll(filepath.Join(left, "memory.sqlite-shm")), os.WriteFile(filepath.Join(left, "memory.sqlite-wal"), damaged, 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, err := engine.Open(t.Context(), engine.Options{Dir: left, Driver: sqlite.Driver{}, Warmup: true, ReadOnly: "a test"}); err == nil || !strings.Contains(err.Error(), "open it once for writing") {
				t.Errorf("byte %d changed by %x, opened for reading: %v", at, mask, err)
				if err == nil {
					_ = e.Close()
				}
			}
			said := &bytes.Buffer{}
			var n int64
			e, err := engine.Open(t.Context(), engine.Options{Dir: left, Driver: sqlite.Driver{}, Warmup: true, Logger: slog.New(slog.NewTextHandler(said, nil))})
			if err == nil {
				n, err = store.Int(e.Query(t.Context(), "SELECT count(*) FROM documents"))
				err = errors.Join(err, e.Close())
			}
			want := len(ends)
			for i, end := range ends {
				if at >= header && at < end {
					want = i
					break
				}
			}
			if err != nil || int(n) != want || strings.Count(said.String(), "a copy of the damaged log is in") != 1 {
				t.Errorf("byte %d changed by %x: %d records, want %d (%v), said %s", at, mask, n, want, err, said)
			}
		}
	}
}

// A log that begins again has frames of before at its end, which are no damage.
func TestARestartedLogIsNotDamaged(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	dir := t.TempDir()
	said := &bytes.Buffer{}
	open := func(dir string) *engine.Engine {
		e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: sqlite.Driver{}, Warmup: true, Logger: slog.New(slog.NewTextHandler(said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	e := open(dir)
	// A row of zeros after one byte makes pages that end with zeros.
	for n := range 500 {
		err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO documents SELECT 'k', hex(randomblob(8)), CAST(zeroblob(9000) AS TEXT), 1, 1")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n%20 != 0 {
			continue
		}
		left := filepath.Join(t.TempDir(), "memory")
		if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := open(left).Close(); err != nil || said.Len() > 0 {
			t.Fatalf("%v, said %s", err, said)
		}
	}
}

// TestADatabaseThatEndsWithinAPageIsRefused cuts a closed database, whose last rows SQLite
// would leave out.
func TestADatabaseThatEndsWithinAPageIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := engine.Options{Dir: dir, Driver: sqlite.Driver{}}
	e, err := engine.Open(t.Context(), o)
	if err == nil {
		err = errors.Join(e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO documents VALUES ('k', 'a', '{}', 1, 1)")
			return err
		}), e.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "memory.sqlite")
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()-100)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, o.ReadOnly = range []string{"", "the test only reads"} {
		e, err := engine.Open(t.Context(), o)
		if err == nil {
			_, err = store.Int(e.Query(t.Context(), "SELECT count(*) FROM documents"))
			_ = e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is damaged; restore a backup") {
			t.Errorf("read only %q: %v", o.ReadOnly, err)
		}
	}
}

package engine_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func TestNoMoreReadersThanConnections(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		for _, connections := range []int{0, 2} {
			e, err := engine.Open(t.Context(), engine.Options{Dir: t.TempDir(), Driver: driver, Limits: engine.Limits{Connections: connections}})
			if err != nil {
				t.Fatal(err)
			}
			if err := add(t.Context(), e, "a"); err != nil {
				t.Fatal(err)
			}
			var reading []store.Rows
			for range max(connections, 5*(1-min(connections, 1))) {
				rows, err := e.Query(t.Context(), "SELECT id FROM documents UNION ALL SELECT id FROM documents")
				if err != nil || !rows.Next() {
					t.Fatalf("reader %d: %v", len(reading), err)
				}
				reading = append(reading, rows)
			}
			// One more waits for a connection, and those who write do not.
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if _, err := e.Query(ctx, "SELECT id FROM documents"); !errors.Is(err, context.DeadlineExceeded) { //nolint:rowserrcheck,sqlclosecheck // there are none
				t.Errorf("reader %d: %v", len(reading), err)
			}
			cancel()
			if err := add(t.Context(), e, "b"); err != nil {
				t.Error(err)
			}
			for _, rows := range reading {
				rows.Close()
			}
			if n := count(t, e); n != 2 {
				t.Errorf("%d documents", n)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestReadersGetAnErrorForARemovedDatabase(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		dir := filepath.Join(t.TempDir(), "memory")
		e := open(t, driver, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Skip("cannot remove files that are open:", err)
		}
		for range 8 {
			_, err := e.Query(t.Context(), "SELECT id FROM documents") //nolint:rowserrcheck,sqlclosecheck // there are none
			wantType(t, "a query", err, tea.ConnectionError)
		}
		if e.Lost() == nil {
			t.Error("the engine does not say that it is lost")
		}
	})
}

// broken takes errBroken for a failure of the disk.
type broken struct{ engine.Driver }

var errBroken = errors.New("the disk is broken")

func (d broken) Fault(err error) engine.Fault {
	if errors.Is(err, errBroken) {
		return engine.FaultBroken
	}
	return d.Driver.Fault(err)
}

func TestAUserWithoutWritePermissionCanRead(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, broken{driver}, t.TempDir())
		if err := add(t.Context(), e, "a"); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			err := e.Write(t.Context(), func(context.Context, store.Tx) error { return errBroken })
			wantType(t, "a broken write", err, tea.ConnectionError)
		}
		err := add(t.Context(), e, "b")
		wantType(t, "the sixth write", err, tea.CircuitOpen)
		var typed *tea.Error
		if errors.As(err, &typed) && (!typed.Retryable || typed.RetryAfter != 30*time.Second) {
			t.Errorf("retryable %v after %v", typed.Retryable, typed.RetryAfter)
		}
		if n := count(t, e); n != 1 {
			t.Errorf("%d documents", n)
		}
		passed := false
		if err := e.Barrier(t.Context(), func() { passed = true }); err != nil || !passed {
			t.Errorf("the barrier: %v, passed %v", err, passed)
		}
	})
}

func TestTheOwnerIsNamedAndADeadOneIgnored(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "owner.lock"), []byte(`{"pid": 999999, "since": "2020-01-01T00:00:00Z"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		first := open(t, driver, dir)
		for _, timeout := range []time.Duration{0, 120 * time.Millisecond} {
			started := time.Now()
			_, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver, Warmup: true, LockTimeout: timeout})
			wantType(t, "a second owner", err, tea.ConnectionError)
			for _, word := range []string{fmt.Sprintf("process %d ", os.Getpid()), dir, "lock_timeout", timeout.String()} {
				if err != nil && !strings.Contains(err.Error(), word) {
					t.Errorf("%v\nsays nothing of %q", err, word)
				}
			}
			if took := time.Since(started); took < timeout {
				t.Errorf("waited %v, not %v", took, timeout)
			}
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if err := add(t.Context(), open(t, driver, dir), "a"); err != nil {
			t.Error(err)
		}
	})
}

// files are the files of a folder by the hashes of their contents.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == "owner.lock" {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestANewerDatabaseIsRefusedUntouched(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		dir := t.TempDir()
		e := open(t, driver, dir)
		err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO tea_schema VALUES (99)")
			return err
		})
		if err = errors.Join(err, e.Close()); err != nil {
			t.Fatal(err)
		}
		before := files(t, dir)
		for range 3 {
			_, err = engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver, Warmup: true})
			wantType(t, "a newer database", err, tea.DependencyMissing)
			if err != nil && !strings.Contains(err.Error(), "newer version (schema 99") {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(before, files(t, dir)); diff != "" {
			t.Errorf("its files have changed (-before +after):\n%s", diff)
		}
	})
}

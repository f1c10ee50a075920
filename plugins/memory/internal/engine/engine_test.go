package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// drivers are the ones of this build.
func drivers(t testing.TB) []engine.Driver {
	t.Helper()
	all := []engine.Driver{sqlite.Driver{}}
	if duckdb.Available {
		d, err := duckdb.New()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func open(t testing.TB, driver engine.Driver, dir string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver, Warmup: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

const insert = "INSERT INTO documents VALUES (?, ?, ?, ?, ?)"

func count(t testing.TB, e *engine.Engine) (n int) {
	t.Helper()
	rows, err := e.Query(t.Context(), "SELECT count(*) FROM documents")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestConcurrentWritesAreAllThereAfterReopening(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers(t) {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			e := open(t, driver, dir)
			const writers, each = 16, 20
			var group sync.WaitGroup
			for w := range writers {
				group.Go(func() {
					for i := range each {
						id := fmt.Sprintf("%d-%d", w, i)
						err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
							_, err := tx.Exec(ctx, insert, "k", id, "{}", 1, 1)
							return err
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if n := count(t, open(t, driver, dir)); n != writers*each {
				t.Errorf("%d documents, want %d", n, writers*each)
			}
		})
	}
}

func TestAFailedWriteDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers(t) {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			e := open(t, driver, t.TempDir())
			bad := errors.New("bad")
			var group sync.WaitGroup
			for i := range 32 {
				group.Go(func() {
					err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
						if _, err := tx.Exec(ctx, insert, "k", fmt.Sprint(i), "{}", 1, 1); err != nil {
							return err
						}
						switch i % 4 {
						case 1:
							return bad
						case 2:
							panic("no")
						}
						return nil
					})
					if ok := i%4 == 0 || i%4 == 3; ok != (err == nil) || (i%4 == 1) != errors.Is(err, bad) {
						t.Errorf("write %d: %v", i, err)
					}
				})
			}
			group.Wait()
			if n := count(t, e); n != 16 {
				t.Errorf("%d documents, want 16", n)
			}
		})
	}
}

func TestASecondOwnerIsRefusedAndTheFirstNamed(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers(t) {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := open(t, driver, dir)
			_, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver, Warmup: true})
			if err == nil {
				t.Fatal("two engines have one folder open")
			}
			t.Log(err)
			waited := make(chan error, 1)
			go func() {
				second, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver, Warmup: true, LockTimeout: time.Minute})
				if err == nil {
					err = second.Close()
				}
				waited <- err
			}()
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-waited; err != nil {
				t.Errorf("the second owner after the first: %v", err)
			}
		})
	}
}

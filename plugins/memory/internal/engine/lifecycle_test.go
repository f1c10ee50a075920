package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs a test on every database of this build.
func each(t *testing.T, test func(t *testing.T, driver engine.Driver)) {
	t.Helper()
	t.Parallel()
	for _, driver := range drivers(t) {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			test(t, driver)
		})
	}
}

func wantType(t *testing.T, what string, err error, want tea.ErrorType) {
	t.Helper()
	var typed *tea.Error
	if !errors.As(err, &typed) || typed.Type != want {
		t.Errorf("%s: %v, want a %s", what, err, want)
	}
}

func add(ctx context.Context, e *engine.Engine, id string) error {
	return e.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Exec(ctx, insert, "k", id, "{}", 1, 1)
		return err
	})
}

var errInvalidated = errors.New("the database has been invalidated")

// invalidated takes errInvalidated for a failure of the database, and counts
// how often it was opened.
type invalidated struct {
	engine.Driver
	opened *atomic.Int64
}

func (d invalidated) Fault(err error) engine.Fault {
	if errors.Is(err, errInvalidated) {
		return engine.FaultFatal
	}
	return d.Driver.Fault(err)
}

func (d invalidated) Open(ctx context.Context, path string, limits engine.Limits) (engine.Handles, error) {
	d.opened.Add(1)
	return d.Driver.Open(ctx, path, limits)
}

func TestAnInvalidatedDatabaseIsOpenedAnew(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		var opened atomic.Int64
		e := open(t, invalidated{driver, &opened}, t.TempDir())
		if err := add(t.Context(), e, "before"); err != nil {
			t.Fatal(err)
		}
		reading, err := e.Query(t.Context(), "SELECT id FROM documents")
		if err != nil {
			t.Fatal(err)
		}
		err = e.Write(t.Context(), func(context.Context, store.Tx) error { return errInvalidated })
		wantType(t, "the failure", err, tea.ConnectionError)
		next := make(chan error, 1)
		go func() { next <- add(t.Context(), e, "after") }()
		// Who reads from the failed one keeps it until he is done.
		if !reading.Next() || reading.Close() != nil {
			t.Error("the rows that were being read are gone")
		}
		if err := <-next; err != nil {
			t.Fatal(err)
		}
		if n := count(t, e); n != 2 {
			t.Errorf("%d documents, want 2", n)
		}
		if n := opened.Load(); n != 2 {
			t.Errorf("opened %d times, want 2", n)
		}
	})
}

func TestCloseWaitsForRowsThatAreRead(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		if err := add(t.Context(), e, "a"); err != nil {
			t.Fatal(err)
		}
		reading, err := e.Query(t.Context(), "SELECT id FROM documents")
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- e.Close() }()
		for { // until Close has begun
			more, err := e.Query(t.Context(), "SELECT 1")
			if err != nil {
				wantType(t, "a call after Close", err, tea.ConnectionError)
				break
			}
			more.Close()
		}
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait: %v", err)
		default:
		}
		var id string
		if !reading.Next() || reading.Scan(&id) != nil || id != "a" {
			t.Errorf("read %q, want a", id)
		}
		reading.Close()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

func TestCloseDoesNotWaitForItself(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		committed := make(chan struct{})
		var inner error
		done := make(chan error, 1)
		go func() {
			done <- e.Write(t.Context(), func(_ context.Context, tx store.Tx) error {
				tx.AfterCommit(func() {
					close(committed)
					for inner == nil { // until Close has begun
						var r store.Rows
						if r, inner = e.Query(context.Background(), "SELECT 1"); inner == nil {
							r.Close()
						}
					}
				})
				return nil
			})
		}()
		<-committed
		if err := errors.Join(e.Close(), <-done); err != nil {
			t.Error(err)
		}
		wantType(t, "a query after a commit, while closing", inner, tea.ConnectionError)
	})
}

func TestWritesThatAreQueuedAtCloseEndOneWayOrTheOther(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		dir := t.TempDir()
		e := open(t, driver, dir)
		var group sync.WaitGroup
		var written atomic.Int64
		first := make(chan struct{}, 200)
		for i := range 200 {
			group.Go(func() {
				err := add(t.Context(), e, fmt.Sprint(i))
				if err == nil {
					written.Add(1)
				} else {
					wantType(t, "a late write", err, tea.ConnectionError)
				}
				first <- struct{}{}
			})
		}
		<-first
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		group.Wait()
		if n := count(t, open(t, driver, dir)); int64(n) != written.Load() {
			t.Errorf("%d documents, %d were acknowledged", n, written.Load())
		}
	})
}

func TestACanceledWriteInAQueueIsNotWaitedForNorDone(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		began, end := make(chan struct{}), make(chan struct{})
		slow := make(chan error, 1)
		go func() {
			slow <- e.Write(t.Context(), func(context.Context, store.Tx) error {
				close(began)
				<-end
				return nil
			})
		}()
		<-began
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error, 1)
		go func() { waiting <- add(ctx, e, "never") }()
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want canceled", err)
		}
		close(end)
		if err := <-slow; err != nil {
			t.Error(err)
		}
		if n := count(t, e); n != 0 {
			t.Errorf("%d documents, want none", n)
		}
	})
}

func TestACanceledWriteDoesNotAffectOthers(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		var group sync.WaitGroup
		for i := range 60 {
			group.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := e.Write(ctx, func(ctx context.Context, tx store.Tx) error {
					if _, err := tx.Exec(ctx, insert, "k", fmt.Sprint(i), "{}", 1, 1); err != nil {
						return err
					}
					if i%3 == 0 {
						cancel()
					}
					_, err := tx.Exec(ctx, insert, "l", fmt.Sprint(i), "{}", 1, 1)
					return err
				})
				if canceled := i%3 == 0; canceled != errors.Is(err, context.Canceled) || !canceled && err != nil {
					t.Errorf("write %d: %v", i, err)
				}
			})
		}
		group.Wait()
		if n := count(t, e); n != 80 {
			t.Errorf("%d documents, want 80", n)
		}
	})
}

func TestAPanicAfterACommitEndsNothing(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		err := e.Write(t.Context(), func(_ context.Context, tx store.Tx) error {
			tx.AfterCommit(func() { panic("no") })
			return nil
		})
		if err := errors.Join(err, add(t.Context(), e, "a")); err != nil {
			t.Error(err)
		}
	})
}

func TestRowsLeftOpenInAWriteDoNotBlock(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		e := open(t, driver, t.TempDir())
		for i := range 3 {
			err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
				if _, err := tx.Query(ctx, "SELECT id FROM documents"); err != nil { //nolint:rowserrcheck,sqlclosecheck // left open
					return err
				}
				_, err := tx.Exec(ctx, insert, "k", fmt.Sprint(i), "{}", 1, 1)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := count(t, e); n != 3 {
			t.Errorf("%d documents, want 3", n)
		}
	})
}

func TestAFolderThatIsRemovedIsNotWrittenTo(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		dir := filepath.Join(t.TempDir(), "memory")
		e := open(t, driver, dir)
		if err := add(t.Context(), e, "a"); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Skip("cannot remove files that are open:", err)
		}
		for range 8 {
			wantType(t, "a write", add(t.Context(), e, "b"), tea.ConnectionError)
		}
		if e.Lost() == nil {
			t.Error("the engine does not say that it is lost")
		}
		if _, err := os.Stat(filepath.Join(dir, driver.File())); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the database was made again: %v", err)
		}
		next := open(t, driver, dir)
		if n := count(t, next); n != 0 {
			t.Errorf("%d documents, want none", n)
		}
		wantType(t, "a write to the removed one", add(t.Context(), e, "b"), tea.ConnectionError)
		if err := add(t.Context(), next, "c"); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsTheWaitForAnotherOwner(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		dir := t.TempDir()
		open(t, driver, dir)
		e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver, LockTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 2)
		go func() { waiting <- add(t.Context(), e, "a") }()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { waiting <- add(ctx, e, "b") }()
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that does not want to wait: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		wantType(t, "the one that waited", <-waiting, tea.ConnectionError)
	})
}

// unhurriedDriver reports whether the opening of a database has a deadline.
type unhurriedDriver struct {
	engine.Driver
	hurried chan bool
}

func (d unhurriedDriver) Open(ctx context.Context, path string, limits engine.Limits) (engine.Handles, error) {
	_, hurried := ctx.Deadline()
	d.hurried <- hurried
	return d.Driver.Open(ctx, path, limits)
}

// A slow device may need minutes to recover what its log has.
func TestOpeningADatabaseHasNoDeadlineOfItsOwn(t *testing.T) {
	each(t, func(t *testing.T, driver engine.Driver) {
		hurried := make(chan bool, 1)
		e, err := engine.Open(t.Context(), engine.Options{Dir: t.TempDir(), Driver: unhurriedDriver{driver, hurried}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		if err := add(t.Context(), e, "a"); err != nil {
			t.Fatal(err)
		}
		if <-hurried {
			t.Error("the opening had a deadline that the caller did not set")
		}
	})
}

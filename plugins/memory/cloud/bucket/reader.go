package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// readersDir is the folder of the copies of read-only processes.
const readersDir = "readers"

// openCopy opens the copy of the process at its first call.
func (s *shared) openCopy() error {
	if s.local != nil {
		return nil
	}
	dir := s.c.Dir
	if s.readOnly() {
		dir = filepath.Join(dir, readersDir)
	}
	l, err := openLocal(dir, s.bucket)
	if err == nil {
		s.local = l
	}
	return err
}

func (s *shared) readOnly() bool { return s.c.ReadOnly != "" }

// writable returns the error of a write if the memory is read-only.
func (s *shared) writable() error {
	if !s.readOnly() {
		return nil
	}
	return tea.Errorf(tea.PermissionDenied, "the memory in the bucket is %w: %s", store.ErrReadOnly, s.c.ReadOnly)
}

// beginReading opens a copy of the current state without the lease. Its holder is read-only and ends when a newer state
// is published.
func (s *shared) beginReading(ctx context.Context) (*holder, error) {
	for try := 1; ; try++ {
		asked := time.Now()
		h, _, err := readHead(ctx, s.bucket)
		if errors.Is(err, objstore.ErrNotFound) || err == nil && h.Pages == 0 {
			return nil, tea.Errorf(tea.NotFound, "there is no memory in %s, and settings.memory.read_only prevents creating one", s.bucket.Address())
		}
		if err != nil {
			return nil, err
		}
		err = s.local.follow(ctx, h)
		if errors.Is(err, objstore.ErrNotFound) && try < maxLost { // another device has merged segments since
			continue
		}
		if err != nil {
			return nil, err
		}
		life, end := context.WithCancel(context.Background())
		t := &holder{s: s, l: s.local, lease: &lease{current: h}, life: life, end: end, began: asked, progress: make(chan struct{}), idle: make(chan struct{}), closed: make(chan struct{})}
		t.engine, err = engine.Open(ctx, engine.Options{Dir: t.l.dir, Driver: sqlite.Driver{}, LockTimeout: s.c.Timeout, ReadOnly: s.c.ReadOnly, Logger: s.c.Logger})
		if err != nil {
			end()
			return nil, err
		}
		t.parts = partsOn(t.engine, t.l.dir, currentBlobs{s.blobs, t}, s.clock, s.c)
		return t, nil
	}
}

// readPublished runs a call on a state that is at least as new as the state published when
// the call began.
func (s *shared) readPublished(ctx context.Context, fn func(*holder) error) error {
	began := time.Now()
	for swept := 0; ; {
		t, err := s.join(ctx)
		if err != nil {
			return err
		}
		latest, err := t.latest(ctx, began)
		if latest && err == nil {
			if err = fn(t); errors.Is(err, errSuperseded) && swept < maxLost {
				latest, err = false, nil
				swept++
			}
		}
		if !latest && err == nil {
			s.retire(t)
		}
		s.leave(t)
		if latest || err != nil {
			return err
		}
	}
}

// errSuperseded reports that a blob was removed because a newer state was published.
var errSuperseded = tea.Errorf(tea.ConnectionError, "the memory in the bucket changes faster than it can be read; try again")

// currentBlobs are the blobs of a reader's copy.
type currentBlobs struct {
	store.BlobStorage
	t *holder
}

func (b currentBlobs) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := b.BlobStorage.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		if latest, headErr := b.t.latest(ctx, time.Now()); headErr == nil && !latest {
			return nil, errSuperseded
		}
	}
	return r, err
}

// latest reports whether a reader's copy was the last published state at a time.
func (t *holder) latest(ctx context.Context, since time.Time) (bool, error) {
	if !t.began.Before(since) {
		return true, nil // it was begun for this call
	}
	now, _, err := readHead(ctx, t.s.bucket)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	have := t.lease.current
	return now.Store == have.Store && now.Version == have.Version, err
}

// endReading closes a reader's copy.
func (t *holder) endReading() {
	t.end()
	if err := errors.Join(t.driver.Close(), t.engine.Close()); err != nil {
		t.s.c.Logger.Warn("the copy of the memory could not be closed", "error", err.Error())
	}
}

// follow updates a reader's copy to the state of a head.
func (l *local) follow(ctx context.Context, h head) error {
	_, err := os.Stat(l.database())
	there := err == nil
	if there && l.state.Store != h.Store {
		if err := l.empty(sqlite.Driver{}.File(), "index", "vectors"); err != nil {
			return err
		}
		l.state, l.published, there = state{}, nil, false
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return store.SystemError(err)
	}
	if err := l.fetch(ctx, h, there); err != nil {
		return fmt.Errorf("fetch the memory: %w", err)
	}
	return l.note(state{Store: h.Store, Term: h.Term, Version: h.Version, Phase: phaseClean})
}

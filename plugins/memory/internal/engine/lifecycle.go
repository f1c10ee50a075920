package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

var (
	// errReplaced means that the database files were replaced since they were
	// opened.
	errReplaced = errors.New("the database was removed or replaced while it was open, so nothing more is written to it; end the run and start it again")
	// errReopening means that the wait for the end of a failed database was too long.
	errReopening = errors.New("the database is being opened again after a failure")
)

// acquire returns the open database, which it opens if necessary. The caller
// releases it with releaseSession or release. It returns an error if the files were
// replaced since they were opened.
func (e *Engine) acquire(ctx context.Context) (*session, error) {
	s, err := e.join()
	switch {
	case err != nil:
		return nil, err
	case s != nil:
		if err := s.owner.still(); err != nil {
			return nil, e.releaseSession(ctx, s, err)
		}
		return s, nil
	}
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	select {
	case e.turn <- struct{}{}:
	case <-wait.Done():
		return nil, e.waitError(ctx)
	}
	defer func() { <-e.turn }()
	if s, err := e.join(); s != nil || err != nil {
		return s, err
	}
	e.mu.Lock()
	previous, identity := e.previous, e.identity
	e.mu.Unlock()
	if previous != nil {
		// This wait is bounded: a caller with open rows of a discarded database would
		// wait for itself. Opening is not: a slow device may have much to recover.
		select {
		case <-previous.gone:
		case <-time.After(e.options.LockTimeout + closeTimeout):
			return nil, errReopening
		case <-wait.Done():
			return nil, e.waitError(ctx)
		}
	}
	s, err = e.openAs(wait, identity)
	if err != nil {
		return nil, e.openError(ctx, wait, err)
	}
	return e.useSession(s)
}

// openError returns the error of an open, or the reason if Close ended it.
func (e *Engine) openError(ctx, wait context.Context, err error) error {
	if ctx.Err() == nil && wait.Err() != nil && errors.Is(err, wait.Err()) {
		return e.waitError(ctx)
	}
	return err
}

// waitError returns the reason why a wait for the database was cancelled.
func (e *Engine) waitError(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errClosed
}

// openAs opens the database, which must have the identity if it is not "".
func (e *Engine) openAs(ctx context.Context, identity string) (*session, error) {
	if identity != "" {
		if _, err := os.Stat(filepath.Join(e.options.Dir, e.options.Driver.File())); errors.Is(err, os.ErrNotExist) {
			return nil, e.invalidate()
		}
	}
	if e.options.ReadOnly == "" {
		if err := os.MkdirAll(e.options.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the folder of the memory: %w", err)
		}
	}
	s, err := openSession(ctx, e.options)
	if e.full(err) && e.options.ReadOnly == "" && e.releaseReserve() {
		s, err = openSession(ctx, e.options)
	}
	if err != nil {
		return nil, err
	}
	if identity != "" && s.identity != identity {
		return nil, errors.Join(e.invalidate(), s.close())
	}
	if e.options.ReadOnly == "" {
		keepReserve(e.options.Dir)
	}
	return s, nil
}

// WhileClosed runs fn while no process has the database open. It returns a
// validation_error if this process has.
func (e *Engine) WhileClosed(ctx context.Context, fn func() error) error {
	if err := e.Writable(); err != nil {
		return err
	}
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.turn }()
	e.mu.Lock()
	open := e.open != nil || e.previous != nil
	e.mu.Unlock()
	if open {
		return tea.Errorf(tea.ValidationError, "the memory in %s is in use by this run", e.options.Dir)
	}
	if err := os.MkdirAll(e.options.Dir, 0o700); err != nil {
		return e.wrap(ctx, err)
	}
	o, err := own(ctx, e.options.Dir, e.options.LockTimeout, false)
	if err != nil {
		return e.wrap(ctx, err)
	}
	return errors.Join(fn(), o.release())
}

// invalidate makes all later calls fail, because users of this engine have cached
// numbers and keys of the old database.
func (e *Engine) invalidate() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost = errReplaced
	return errReplaced
}

// useSession makes a session the open session and acquires it.
func (e *Engine) useSession(s *session) (*session, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errors.Join(errClosed, s.close())
	}
	defer e.mu.Unlock()
	if e.identity == "" {
		e.identity = s.identity
		close(e.opened)
	}
	e.open = s
	s.users++
	return s, nil
}

// join acquires the open database; it returns nil if there is none.
func (e *Engine) join() (*session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, errClosed
	case e.lost != nil:
		return nil, e.lost
	case e.open == nil:
		return nil, nil
	}
	e.open.users++
	return e.open, nil
}

// releaseSession releases a session after a call that ended with err, which it returns.
// After a fatal error it closes the session, and the next call opens a new one.
func (e *Engine) releaseSession(ctx context.Context, s *session, err error) error {
	if err != nil && ctx.Err() == nil && e.fault(err) == FaultFatal {
		e.discard(s, err)
	}
	e.release(s)
	return err
}

func (e *Engine) release(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.users--
	if s.retired && s.users == 0 {
		close(s.idle)
	}
}

// discard closes a failed session after its last call.
func (e *Engine) discard(s *session, reason error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open != s {
		return
	}
	e.options.Logger.Error("the database failed and is opened again", "engine", string(e.Dialect()), "error", reason.Error())
	e.open, e.previous = nil, s
	s.retire() // the caller still uses it
	go func() {
		defer close(s.gone)
		<-s.idle
		started := time.Now()
		if err := s.close(); err != nil {
			e.options.Logger.Error("close the failed database", "error", err.Error(), "took", time.Since(started))
		}
	}()
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// selectMemory is the memory of an untrusted query in addition to the buffers
	// of the database.
	selectMemory = 128 << 20
	// A query that still runs this long after an interrupt is not expected to end;
	// memoryGrace is for a query that takes too much memory.
	stopGrace   = 2 * time.Second
	memoryGrace = 500 * time.Millisecond
)

// errQueryRunning is the error of queries while a query that cannot be stopped runs.
func errQueryRunning() error {
	return tea.Errorf(tea.ResourceExhausted, "an earlier SQL query cannot be stopped and still runs; SQL is refused until it ends or the process is started again")
}

// Select runs one SELECT of an untrusted query. A query that does not stop at its
// limit of time or memory continues in the background: Select returns the limit's
// error, Options.Overrun is called, and further queries are refused until it
// ends.
func (e *Engine) Select(ctx context.Context, query string, bounds store.Sandbox) (store.Table, error) {
	if e.unstoppable.Load() > 0 {
		return store.Table{}, errQueryRunning()
	}
	if bounds.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, bounds.Timeout)
		defer cancel()
	}
	bounds = sandbox.Bounds(bounds)
	if bounds.MaxMemory <= 0 {
		bounds.MaxMemory = e.options.Limits.MemoryBytes + selectMemory
	}
	watched, stop := sandbox.Watch(ctx, bounds.MaxMemory)
	defer stop()
	var table store.Table
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		table, err = e.selectOn(watched, query, bounds)
	}()
	select {
	case <-done:
		return table, err
	case <-watched.Done():
	}
	failure := tea.AsError(sandbox.Failure(watched, context.Cause(watched), bounds.Timeout))
	grace, growing := stopGrace, failure.Type == tea.ValidationError
	if growing {
		grace = memoryGrace
	}
	select {
	case <-done:
		return table, err
	case <-time.After(grace):
	}
	e.unstoppable.Add(1)
	go func() {
		<-done
		e.unstoppable.Add(-1)
	}()
	e.options.Logger.Error("an SQL query cannot be stopped", "engine", string(e.Dialect()), "error", failure.Message)
	if e.options.Overrun != nil {
		e.options.Overrun(growing)
	}
	failure.Message += "; the database did not stop it"
	if growing {
		failure.Type = tea.ResourceExhausted
	}
	return store.Table{}, failure
}

func (e *Engine) selectOn(ctx context.Context, query string, bounds store.Sandbox) (table store.Table, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a query: %v\n%s", p, debug.Stack())
		}
	}()
	err = e.on(ctx, e.reads, func(s *session) error {
		conn, err := s.handles.Read.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		table, err = e.options.Driver.Select(ctx, conn, &e.plans, query, bounds)
		return sandbox.Failure(ctx, err, bounds.Timeout)
	})
	if errors.Is(err, context.Cause(ctx)) {
		err = sandbox.Failure(ctx, err, bounds.Timeout)
	}
	return table, err
}

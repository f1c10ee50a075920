package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// deaf is a database that does not stop a query before it is released.
type deaf struct {
	sqlite.Driver
	release chan struct{}
}

func (d deaf) Select(ctx context.Context, conn *sql.Conn, plans *sandbox.Plans, query string, bounds store.Sandbox) (store.Table, error) {
	if strings.Contains(query, "forever") {
		<-d.release
	}
	return d.Driver.Select(ctx, conn, plans, query, bounds)
}

func TestQueryThatCannotBeStopped(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	release, overrun := make(chan struct{}), make(chan struct{}, 1)
	e, err := engine.Open(t.Context(), engine.Options{Dir: t.TempDir(), Driver: deaf{release: release}, Warmup: true, Overrun: func(bool) { overrun <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	fails := func(query string, want tea.ErrorType, says string) {
		t.Helper()
		_, err := e.Select(t.Context(), query, store.Sandbox{Timeout: 200 * time.Millisecond})
		if typed := new(tea.Error); !errors.As(err, &typed) || typed.Type != want || !strings.Contains(typed.Message, says) {
			t.Errorf("%s: %v; want %s: %s", query, err, want, says)
		}
	}
	fails("SELECT 'forever'", tea.Timeout, "did not stop it")
	select {
	case <-overrun:
	default:
		t.Error("Overrun was not called")
	}
	fails("SELECT 1", tea.ResourceExhausted, "still runs")
	if err := e.Write(t.Context(), func(context.Context, store.Tx) error { return nil }); err != nil {
		t.Errorf("writing meanwhile: %v", err)
	}
	close(release)
	for {
		table, err := e.Select(t.Context(), "SELECT 1", store.Sandbox{Timeout: time.Minute})
		if err == nil {
			if rowsOf(t, table) != "[[1]]" {
				t.Errorf("afterwards: %v", table.Rows)
			}
			return
		}
		if typed := new(tea.Error); !errors.As(err, &typed) || typed.Type != tea.ResourceExhausted {
			t.Fatal(err)
		}
	}
}

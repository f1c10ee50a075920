package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// queryHarmsNoOther checks that a writer that fails does not affect others.
func queryHarmsNoOther(t *testing.T, e *database) {
	e.add(t, "there")
	var group sync.WaitGroup
	for i := range 60 {
		group.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := e.Write(ctx, func(ctx context.Context, tx store.Tx) error {
				if err := addIn(ctx, tx, fmt.Sprint(i)); err != nil {
					return err
				}
				switch i % 6 {
				case 1:
					return errors.New("no")
				case 2:
					panic("no")
				case 3:
					cancel()
				case 4:
					return addIn(ctx, tx, "there")
				}
				return addIn(ctx, tx, fmt.Sprint(i, "+"))
			})
			if wanted := i%6 == 0 || i%6 == 5; wanted != (err == nil) {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	group.Wait()
	for range 2 {
		want(t, "documents", len(strings.Fields(e.ids(t))), 1+2*20)
		e.reopen(t)
	}
}

func queryConcurrent(t *testing.T, e *database) {
	const goroutines, each = 32, 12
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%d", g, i)
				if err := add(t.Context(), e.Engine, id); err != nil {
					t.Error(err)
				}
				rows, err := e.Query(t.Context(), "SELECT id FROM documents WHERE kind = ? AND id = ?", "k", id)
				if err != nil {
					t.Error(err)
					return
				}
				want(t, "what was just written", scanTexts(t, rows), []string{id})
			}
		})
	}
	group.Wait()
	for range 2 {
		want(t, "documents", len(strings.Fields(e.ids(t))), goroutines*each)
		e.reopen(t)
	}
}

func queryCalls(e *engine.Engine) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Identity": func(ctx context.Context) error { _, err := e.Identity(ctx); return err },
		"Query": func(ctx context.Context) error {
			rows, err := e.Query(ctx, "SELECT id FROM documents")
			if err == nil {
				err = errors.Join(rows.Err(), rows.Close())
			}
			return err
		},
		"Write": func(ctx context.Context) error { return add(ctx, e, "never") },
		"Select": func(ctx context.Context) error {
			_, err := e.Select(ctx, "SELECT id FROM documents", store.Sandbox{Tables: []string{"documents"}, MaxRows: 1, MaxBytes: 100})
			return err
		},
	}
}

func queryCanceled(t *testing.T, e *database) {
	e.add(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range queryCalls(e.Engine) {
		if err := call(ctx); !errors.Is(err, context.Canceled) && name != "Identity" {
			t.Errorf("%s returns %v", name, err)
		}
	}
	e.add(t, "b")
	want(t, "documents", e.ids(t), "a b")
}

// queryCanceledWaiting cancels a write that waits for another one.
func queryCanceledWaiting(t *testing.T, e *database) {
	began, end := make(chan struct{}), make(chan struct{})
	slow, waiting := make(chan error, 1), make(chan error, 1)
	go func() {
		slow <- e.Write(context.WithoutCancel(t.Context()), func(ctx context.Context, tx store.Tx) error {
			close(began)
			<-end
			return addIn(ctx, tx, "slow")
		})
	}()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	go func() { waiting <- add(ctx, e.Engine, "never") }()
	cancel()
	want(t, "the waiting write is canceled", errors.Is(<-waiting, context.Canceled), true)
	close(end)
	want(t, "the slow write", <-slow, nil)
	want(t, "documents", e.ids(t), "slow")
}

func queryClosed(t *testing.T, e *database) {
	e.add(t, "a")
	before := e.Engine
	e.reopen(t)
	for name, call := range queryCalls(before) {
		wantType(t, name+" after Close", call(t.Context()), tea.ConnectionError)
	}
	want(t, "a second Close", before.Close(), nil)
	want(t, "documents", e.ids(t), "a")
}

package embedded

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBacklogKeepsTheOrder(t *testing.T) {
	t.Parallel()
	var b backlog
	var got, want []int
	for i := range 1000 {
		want = append(want, i)
		b.add(i, func() { got = append(got, i) })
		if i%100 != 0 {
			continue
		}
		if err := b.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestBacklogIsWaitedForAsFarAsItWasThen(t *testing.T) {
	t.Parallel()
	var b backlog
	var got []int
	stop := make(chan struct{})
	b.add(1, func() {
		got = append(got, 1)
		b.add(1, func() { <-stop }) // it comes while the first is waited for
	})
	if err := b.wait(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]int{1}, got); diff != "" {
		t.Error(diff)
	}
	close(stop)
}

func TestBacklogIsNotWaitedForWithoutPatience(t *testing.T) {
	t.Parallel()
	var b backlog
	stop := make(chan struct{})
	b.add(1, func() { <-stop })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(stop)
	if err := b.wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// However many write, what waits stays small.
func TestBacklogIsBounded(t *testing.T) {
	t.Parallel()
	var b backlog
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				b.add(maxBacklog/4, func() {})
				b.mu.Lock()
				size := b.size
				b.mu.Unlock()
				// Each of the others may have added one since.
				if size > maxBacklog+8*maxBacklog/4 {
					t.Errorf("%d bytes wait", size)
				}
			}
		})
	}
	group.Wait()
	if err := b.wait(t.Context()); err != nil || b.size != 0 {
		t.Errorf("%v, %d bytes are left", err, b.size)
	}
}

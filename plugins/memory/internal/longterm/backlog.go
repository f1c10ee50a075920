package longterm

import (
	"context"
	"sync"
)

// enough is how many bytes of values may wait for the index before a commit
// waits, too.
const enough = 1 << 20

// backlog is the changes that the index still lacks. They are applied one after
// the other, in the order of the commits, in the background of the callers. A
// search waits until its turn has come. The zero value is empty.
type backlog struct {
	mu      sync.Mutex
	waiting []task
	running bool
	size    int           // of what waits, in bytes
	added   int64         // how many were added ever
	done    int64         // how many of them were applied
	moved   chan struct{} // closed when done has grown; nil if no call waits
}

type task struct {
	size int
	fn   func()
}

// add hands over fn, which must not panic. Where too much waits already, it
// returns later.
func (b *backlog) add(size int, fn func()) {
	b.mu.Lock()
	b.waiting = append(b.waiting, task{size, fn})
	b.added++
	b.size += size
	if !b.running {
		b.running = true
		go b.run()
	}
	b.mu.Unlock()
	_ = b.until(context.Background(), func() bool { return b.size <= enough }) // the context never ends
}

// run applies what waits until nothing does.
func (b *backlog) run() {
	for {
		b.mu.Lock()
		if len(b.waiting) == 0 {
			b.waiting, b.running = nil, false
			b.mu.Unlock()
			return
		}
		next := b.waiting[0]
		b.waiting[0] = task{} // it may hold a large value
		b.waiting = b.waiting[1:]
		b.mu.Unlock()
		next.fn()
		b.mu.Lock()
		b.done++
		b.size -= next.size
		if b.moved != nil {
			close(b.moved)
			b.moved = nil
		}
		b.mu.Unlock()
	}
}

// wait returns when everything is applied that was added before.
func (b *backlog) wait(ctx context.Context) error {
	b.mu.Lock()
	added := b.added
	b.mu.Unlock()
	return b.until(ctx, func() bool { return b.done >= added })
}

// until returns when the condition holds, which is asked with b.mu held, or
// with the context's error.
func (b *backlog) until(ctx context.Context, holds func() bool) error {
	for {
		b.mu.Lock()
		if holds() {
			b.mu.Unlock()
			return nil
		}
		if b.moved == nil {
			b.moved = make(chan struct{})
		}
		moved := b.moved
		b.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

package embedded

import (
	"context"
	"sync"
)

// maxBacklog is the size in bytes of the values that may wait for the index before a
// commit waits, too.
const maxBacklog = 1 << 20

// backlog is a queue of committed changes that a goroutine applies to the index, in the
// order of the commits. The zero value is empty.
type backlog struct {
	mu      sync.Mutex
	waiting []task
	running bool
	size    int           // bytes of the waiting values
	added   int64         // number of tasks added so far
	done    int64         // number of tasks applied so far
	moved   chan struct{} // closed when done grows; nil if nobody waits
}

type task struct {
	size int
	fn   func()
}

// add queues fn, which must not panic. It blocks while the queue is full.
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
	_ = b.until(context.Background(), func() bool { return b.size <= maxBacklog })
}

// run applies tasks until the queue is empty.
func (b *backlog) run() {
	for {
		b.mu.Lock()
		if len(b.waiting) == 0 {
			b.waiting, b.running = nil, false
			b.mu.Unlock()
			return
		}
		next := b.waiting[0]
		b.waiting[0] = task{} // release the value
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

// wait waits until all tasks added before the call are applied.
func (b *backlog) wait(ctx context.Context) error {
	b.mu.Lock()
	added := b.added
	b.mu.Unlock()
	return b.until(ctx, func() bool { return b.done >= added })
}

// until waits until a condition holds, which is called with b.mu held. It returns the
// context's error if the context ends first.
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

package llm

import (
	"context"
	"sync"
)

// slots limits the concurrent requests to a server. It is safe for concurrent use; the
// zero value is ready for use.
type slots struct {
	mu sync.Mutex
	of map[slotKey]chan struct{}
}

type slotKey struct {
	server string
	limit  int
}

// acquire waits for a slot of a server. The caller must call release. Without a limit
// it never waits.
func (s *slots) acquire(ctx context.Context, server string, limit int) (release func(), err error) {
	if limit <= 0 {
		return func() {}, nil
	}
	s.mu.Lock()
	if s.of == nil {
		s.of = map[slotKey]chan struct{}{}
	}
	key := slotKey{server, limit}
	slot := s.of[key]
	if slot == nil {
		slot = make(chan struct{}, limit)
		s.of[key] = slot
	}
	s.mu.Unlock()
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

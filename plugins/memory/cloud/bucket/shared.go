package bucket

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/objects"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// shared is the database as a process uses it, which takes the lease when it needs it. It is safe for concurrent use.
type shared struct {
	c      store.Config
	o      options
	bucket *objstore.Bucket
	blobs  store.BlobStorage
	clock  *clock.Clock
	work   sync.WaitGroup

	// turn is held by the goroutine that takes the lease.
	turn chan struct{}

	mu     sync.Mutex // guards the fields below, and some fields of the holder
	local  *local     // opened by the first call
	holder *holder
	closed bool
}

const blobPrefix = "blobs/"

func open(ctx context.Context, c store.Config) (*shared, error) {
	if _, err := store.ParseURL("memory.url", c.URL, "s3", "gs", "azblob", "az"); err != nil {
		return nil, err
	}
	s := &shared{c: c, turn: make(chan struct{}, 1)}
	if err := c.Decode(&s.o); err != nil {
		return nil, err
	}
	var err error
	if s.bucket, err = objects.Open(ctx, c.URL, s.o.Settings, c.Timeout, schemes()...); err != nil {
		return nil, err
	}
	if s.blobs = c.Blobs; s.blobs == nil {
		below, err := objects.Open(ctx, strings.TrimSuffix(c.URL, "/")+"/"+strings.TrimSuffix(blobPrefix, "/"), s.o.Settings, c.Timeout, schemes()...)
		if err != nil {
			return nil, errors.Join(err, s.bucket.Close())
		}
		s.blobs = objects.New(below)
	}
	start := c.Now()
	s.clock = clock.Fixed(start, func() time.Duration { return c.Now().Sub(start) })
	return s, nil
}

// maxLost bounds how often a call is repeated because another device took the lease.
const maxLost = 5

// read runs a call, and returns when everything that it has read is acknowledged.
func (s *shared) read(ctx context.Context, fn func(*holder) error) error {
	if s.readOnly() {
		return s.readPublished(ctx, fn)
	}
	return s.call(ctx, func(t *holder) error {
		err := fn(t)
		return errors.Join(t.seen(ctx), err)
	})
}

// write runs a call that writes through the tracked database, which acknowledges
// the writes.
func (s *shared) write(ctx context.Context, fn func(*holder) error) error {
	if err := s.writable(); err != nil {
		return err
	}
	return s.call(ctx, func(t *holder) error {
		err := fn(t)
		if err == nil {
			return nil
		}
		return errors.Join(t.seen(ctx), err) // the error can be a result, such as a conflict
	})
}

// call runs a call with the lease. It retries if the lease was lost before the
// call changed anything.
func (s *shared) call(ctx context.Context, fn func(*holder) error) error {
	for try := 1; ; try++ {
		t, err := s.join(ctx)
		if err != nil {
			return err
		}
		if err = t.verify(ctx); err == nil {
			err = fn(t)
		}
		s.leave(t)
		var lost *lostError
		if !errors.As(err, &lost) {
			return err
		}
		if lost.unknown || lost.published || try == maxLost {
			return lost.typed()
		}
	}
}

// join returns the holder, after taking the lease if there is none. The caller calls
// leave.
func (s *shared) join(ctx context.Context) (*holder, error) {
	for {
		s.mu.Lock()
		t := s.holder
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, errClosed()
		case t != nil && !t.ending:
			t.users++
			s.mu.Unlock()
			return t, nil
		}
		s.mu.Unlock()
		if t != nil {
			select {
			case <-t.closed:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			continue
		}
		if err := s.advance(ctx); err != nil {
			return nil, err
		}
	}
}

// advance takes the lease unless another goroutine has taken it.
func (s *shared) advance(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	s.mu.Lock()
	there, closed := s.holder != nil, s.closed
	s.mu.Unlock()
	if there || closed {
		return nil
	}
	if err := s.openCopy(); err != nil {
		return err
	}
	begin := s.begin
	if s.readOnly() {
		begin = s.beginReading
	}
	t, err := begin(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.holder = t
	s.mu.Unlock()
	t.mu.Lock()
	lost := t.lost != nil
	t.mu.Unlock()
	if lost { // while the copy was prepared
		s.retire(t)
	}
	return nil
}

func (s *shared) leave(t *holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.users--; t.ending && t.users == 0 {
		close(t.idle)
	}
}

// retire ends the holder after its last call.
func (s *shared) retire(t *holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != t || t.ending {
		return
	}
	t.ending = true
	if t.users == 0 {
		close(t.idle)
	}
	s.work.Go(func() {
		<-t.idle
		if s.readOnly() {
			t.endReading()
		} else {
			t.finish()
		}
		s.mu.Lock()
		s.holder = nil
		s.mu.Unlock()
		close(t.closed)
	})
}

// close publishes pending changes and releases the lease.
func (s *shared) close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.turn <- struct{}{} // prevents taking the lease again
	s.mu.Lock()
	t := s.holder
	s.mu.Unlock()
	if t != nil {
		s.retire(t)
		<-t.closed
	}
	s.work.Wait()
	var err error
	if s.local != nil {
		err = s.local.close()
	}
	if s.c.Blobs == nil {
		err = errors.Join(err, store.CloseBlobs(s.blobs))
	}
	return errors.Join(err, s.bucket.Close())
}

// discard removes an unused segment in the background. If that fails, sweep
// removes it.
func (s *shared) discard(name string) {
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.c.Timeout)
		defer cancel()
		if err := s.bucket.Delete(ctx, name); err != nil {
			s.c.Logger.Debug("an unused part of the memory could not be removed", "error", err.Error())
		}
	})
}

// sweep removes segments of earlier terms that are not in the head. The devices
// of these terms cannot publish any more.
func (s *shared) sweep(ctx context.Context, t *holder) error {
	h := t.current()
	used := map[string]bool{}
	for _, segment := range h.Segments {
		used[segment.Name] = true
	}
	for o, err := range s.bucket.List(ctx, segmentPrefix) {
		if err != nil {
			return err
		}
		if term, ok := termOf(o.Name); !ok || term >= h.Term || used[o.Name] {
			continue
		}
		if err := t.verify(ctx); err != nil {
			return err
		}
		if err := s.bucket.Delete(ctx, o.Name); err != nil {
			return err
		}
	}
	return nil
}

// termOf returns the term in which a segment was made.
func termOf(name string) (term int64, ok bool) {
	text, _, _ := strings.Cut(strings.TrimPrefix(name, segmentPrefix), "-")
	term, err := strconv.ParseInt(text, 16, 64)
	return term, err == nil
}

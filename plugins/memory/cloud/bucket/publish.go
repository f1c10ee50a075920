package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

const (
	segmentPrefix = "segments/"
	// inMemory is the maximum number of pages of a segment that is built in memory
	// instead of a file.
	inMemory = 1024
)

// publishWaits are the pauses after failed attempts.
var publishWaits = backoff.Policy{Base: 100 * time.Millisecond, Max: 10 * time.Second, Multiplier: 2, Jitter: 0.5}

// publisher publishes changes until the holder ends.
func (t *holder) publisher() {
	for failures := 0; ; {
		if failures == 0 {
			select {
			case <-t.changed:
			case <-t.life.Done():
				return
			}
			if !t.s.o.remote() && backoff.Sleep(t.life, t.s.o.delay()) != nil {
				return
			}
		} else if backoff.Sleep(t.life, publishWaits.Wait(failures)) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.life, publishTimeout)
		err := t.publish(ctx, false)
		cancel()
		switch {
		case err == nil:
			failures = 0
			if t.wanted() {
				t.s.retire(t)
			}
		case errors.As(err, new(*lostError)) || t.life.Err() != nil:
			return
		default:
			failures++
			t.s.c.Logger.Warn("the memory could not be published; it is retried", "error", err.Error())
		}
	}
}

// publishTimeout bounds one attempt; the connections have separate limits.
const publishTimeout = time.Hour

// publish makes the state of the database the current state of the bucket. With
// release it also releases the lease, and refuses later writes.
func (t *holder) publish(ctx context.Context, release bool) error {
	t.publishing.Lock()
	defer t.publishing.Unlock()
	p := &publication{t: t, release: release}
	err := p.run(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.done = p.upTo
	} else {
		for _, n := range p.changed {
			t.pending[n] = struct{}{}
		}
		t.compare = t.compare || p.compare
		if t.failedUpTo = p.upTo; p.snapshot == nil {
			t.failedUpTo = t.commits
		}
	}
	t.failed = err
	t.attempts++
	close(t.progress)
	t.progress = make(chan struct{})
	return err
}

// publication is one attempt to publish.
type publication struct {
	t       *holder
	release bool
	// The changes taken from the holder.
	changed []uint32
	compare bool
	upTo    int64

	snapshot *sqlite.Snapshot
	marks    map[store.Feed]int64
}

func (p *publication) run(ctx context.Context) (err error) {
	t := p.t
	barrier := t.engine.Barrier(ctx, func() { err = p.take(ctx) })
	if err = errors.Join(barrier, err); err != nil {
		return err
	}
	if p.snapshot == nil {
		if !p.release {
			return nil
		}
		return t.swap(ctx, p.finish, func(h head) bool { return h.Holder == "" })
	}
	h, x, upload, err := p.segment(ctx)
	err = errors.Join(err, p.snapshot.End())
	if upload != nil {
		defer upload.Close()
	}
	if err != nil {
		return err
	}
	if upload != nil {
		name := h.Segments[len(h.Segments)-1].Name
		if _, err := t.s.bucket.Put(ctx, name, upload, objstore.PutOptions{}); err != nil {
			return err
		}
		t.l.indexes[name] = x
	}
	before := t.current()
	t.mu.Lock()
	t.written = p.upTo
	t.mu.Unlock()
	err = t.swap(ctx, func(next *head) {
		next.Version, next.PageSize, next.Pages, next.Segments = h.Version, h.PageSize, h.Pages, h.Segments
		p.finish(next)
	}, func(now head) bool { return now.Version >= h.Version })
	if err != nil {
		return err
	}
	p.published(h, x, before)
	return nil
}

// finish releases the lease in a head if the publication is the last one.
func (p *publication) finish(h *head) {
	if p.release {
		h.Holder = ""
	}
}

func (t *holder) current() head {
	t.leaseMu.Lock()
	defer t.leaseMu.Unlock()
	return t.lease.current
}

// take takes the pending changes and begins a snapshot that includes them. No write may run at the same time.
func (p *publication) take(ctx context.Context) error {
	t := p.t
	t.collect()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = t.sealed || p.release
	p.upTo = t.commits
	if len(t.pending) == 0 && !t.compare {
		return nil
	}
	snapshot, err := t.pages.Snapshot(ctx)
	if err != nil {
		return err
	}
	p.snapshot = snapshot
	p.changed, p.compare = slices.Sorted(maps.Keys(t.pending)), t.compare
	t.pending, t.compare = map[uint32]struct{}{}, false
	return nil
}

// segment returns the next head and its new segment. It returns no segment if no page has changed.
func (p *publication) segment(ctx context.Context) (h head, x index, upload io.ReadCloser, err error) {
	t := p.t
	if h, err = t.settled(ctx); err != nil {
		return h, x, nil, err
	}
	h.Version++
	h.PageSize, h.Pages = t.pages.Size(), p.snapshot.Count()
	if !t.s.o.remote() {
		if p.marks, err = marks(ctx, p.snapshot); err != nil {
			return h, x, nil, err
		}
	}
	if p.compare {
		if p.changed, err = p.differing(ctx); err != nil {
			return h, x, nil, err
		}
	}
	if len(p.changed) == 0 {
		return h, x, nil, nil
	}
	pages, keep := plan(h.Segments, func(s segment) index { return t.l.indexes[s.Name] }, slices.Clone(p.changed), h.Pages)
	if len(pages) == 0 { // all of them no longer exist
		return h, x, nil, nil
	}
	name := fmt.Sprintf("%s%016x-%s", segmentPrefix, h.Term, rand.Text())
	x, s, upload, err := p.build(ctx, pages)
	if err != nil {
		return h, x, upload, err
	}
	s.Name = name
	h.Segments = append(slices.Clone(h.Segments[:keep]), s)
	return h, x, upload, nil
}

// build builds a segment from pages.
func (p *publication) build(ctx context.Context, pages []uint32) (index, segment, io.ReadCloser, error) {
	page := func(n uint32) ([]byte, error) { return p.snapshot.Page(ctx, n) }
	if len(pages) <= inMemory {
		var data bytes.Buffer
		x, s, err := encode(&data, pages, page)
		return x, s, io.NopCloser(&data), err
	}
	file, err := os.CreateTemp(p.t.l.dir, "segment-")
	if err != nil {
		return index{}, segment{}, nil, store.SystemError(err)
	}
	x, s, err := encode(file, pages, page)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	return x, s, temporary{file}, store.SystemError(err)
}

// temporary is a file that is removed when it is closed.
type temporary struct{ *os.File }

func (f temporary) Close() error { return errors.Join(f.File.Close(), os.Remove(f.Name())) }

// differing returns the pages that differ from the published ones.
func (p *publication) differing(ctx context.Context) (all []uint32, err error) {
	published := p.t.l.published
	for n := uint32(1); n <= p.snapshot.Count(); n++ {
		page, err := p.snapshot.Page(ctx, n)
		if err != nil {
			return nil, err
		}
		if int(n) > len(published) || published[n-1] != hashOf(page) {
			all = append(all, n)
		}
	}
	return all, nil
}

// marks returns the last numbers of the feeds, and of the logs of tables.
func marks(ctx context.Context, s *sqlite.Snapshot) (map[store.Feed]int64, error) {
	last := map[store.Feed]int64{}
	for feed, table := range map[store.Feed]string{store.EntryFeed: "ltm", store.VectorFeed: "vectors", store.DocumentFeed: "documents"} {
		n, err := s.Int(ctx, fmt.Sprintf("SELECT coalesce(max(seq), 0) FROM (SELECT max(seq) AS seq FROM %s UNION ALL SELECT max(seq) FROM tea_deleted WHERE feed = '%s')", table, feed))
		if err != nil {
			return nil, err
		}
		last[feed] = n
	}
	logs, err := s.Names(ctx, tabular.LogPrefix)
	if err != nil {
		return nil, err
	}
	for _, log := range logs {
		if last[store.Feed(log)], err = s.Int(ctx, "SELECT coalesce(max(_tea_seq), 0) FROM "+log); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// published records the published state, and removes the segments that were
// merged.
func (p *publication) published(h head, x index, before head) {
	l := p.t.l
	hashes := make([]uint64, h.Pages)
	copy(hashes, l.published)
	for i, n := range x.numbers {
		hashes[n-1] = x.hashes[i]
	}
	l.published = hashes
	if p.marks != nil {
		s := l.state
		s.Version, s.Marks = h.Version, p.marks
		if err := l.note(s); err != nil {
			p.t.s.c.Logger.Warn("the state of the memory's copy could not be stored", "error", err.Error())
		}
	}
	for _, s := range before.Segments {
		if !slices.ContainsFunc(h.Segments, func(kept segment) bool { return kept.Name == s.Name }) {
			delete(l.indexes, s.Name)
			p.t.s.discard(s.Name)
		}
	}
}

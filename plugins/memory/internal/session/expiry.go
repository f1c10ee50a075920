package session

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// deadline is the next instant at which an active session expires, or an earlier
// one. It saves queries.
type deadline struct {
	archiving sync.Mutex // one goroutine archives; the others wait

	mu       sync.Mutex // guards the fields below
	known    bool
	next     time.Time // zero = none
	lowered  time.Time // the earliest expiry that was added since begin
	replaced bool      // sessions were written outside of this package since begin
}

func (d *deadline) passed(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.known || (!d.next.IsZero() && !d.next.After(now))
}

// begin is called before the database is queried.
func (d *deadline) begin() (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lowered, d.replaced = time.Time{}, false
	return d.known
}

// end sets the result of the query.
func (d *deadline) end(next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.next = !d.replaced, earlier(next, d.lowered)
}

// lower adds a time of expiry; zero = never. It is called after the write, even
// if the write failed: if it were called before, a concurrent query that does not
// see the write could undo it.
func (d *deadline) lower(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next, d.lowered = earlier(d.next, at), earlier(d.lowered, at)
}

// earlier returns the earlier of two times; zero = never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Sweep archives the sessions that have expired and returns their number.
func (s *Sessions) Sweep(ctx context.Context) (int, error) { return s.settle(ctx, s.o.Clock.Now()) }

// settle archives the sessions that have expired by now. Its first call also
// restores sessions that were archived by a clock that was ahead: the clock of a
// process never goes back, but the next process can start with an earlier one.
func (s *Sessions) settle(ctx context.Context, now time.Time) (archived int, err error) {
	if s.o.ReadOnly || !s.due.passed(now) {
		return 0, nil
	}
	s.due.archiving.Lock()
	defer s.due.archiving.Unlock()
	if !s.due.passed(now) {
		return 0, nil
	}
	if !s.due.begin() {
		early := []store.Condition{{Field: "status", Op: store.Eq, Value: string(Archived)}, {Field: "reason", Op: store.Eq, Value: Expired}, {Field: "expires_at", Op: store.Gt, Value: clock.Text(now)}}
		if _, err := s.each(ctx, early, (*Session).revive); err != nil {
			return 0, err
		}
	}
	due := []store.Condition{{Field: "status", Op: store.Eq, Value: string(Active)}, {Field: "expires_at", Op: store.Le, Value: clock.Text(now)}}
	archived, err = s.each(ctx, due, (*Session).expire)
	if err != nil {
		return archived, err
	}
	// Read several, because the first ones can be damaged.
	next, err := s.o.Documents.Query(ctx, store.DocumentQuery{
		Kind: Kind, OrderBy: "expires_at", Limit: pageSize,
		Where: []store.Condition{{Field: "status", Op: store.Eq, Value: string(Active)}, {Field: "expires_at", Op: store.Gt, Value: ""}},
	})
	if err != nil {
		return archived, err
	}
	var first time.Time
	for _, d := range next {
		if have, err := decode(d); err == nil {
			first = have.ExpiresAt
			break
		}
	}
	if s.o.Shared {
		first = earlier(first, now.Add(othersWithin))
	}
	s.due.end(first)
	return archived, nil
}

// othersWithin bounds the time until a session that another process stored is
// noticed.
const othersWithin = time.Minute

// Expired returns a function that reports whether a session has expired without
// being archived in the documents, which happens only if they are read-only.
func (s *Sessions) Expired(ctx context.Context) (func(id string) bool, error) {
	if !s.o.ReadOnly {
		return func(string) bool { return false }, nil
	}
	if s.expiring.Load() == nil {
		all, err := s.o.Documents.Query(ctx, store.DocumentQuery{Kind: Kind, Limit: math.MaxInt32, Where: []store.Condition{
			{Field: "status", Op: store.Eq, Value: string(Active)}, {Field: "expires_at", Op: store.Gt, Value: ""},
		}})
		if err != nil {
			return nil, err
		}
		expiring := map[string]time.Time{}
		for _, d := range all {
			if have, err := decode(d); err == nil {
				expiring[have.ID] = have.ExpiresAt
			}
		}
		s.expiring.Store(&expiring)
	}
	expiring, now := *s.expiring.Load(), s.o.Clock.Now()
	return func(id string) bool {
		at, ok := expiring[id]
		return ok && !at.After(now)
	}, nil
}

func (s *Session) expire(now time.Time) {
	if s.expired(now) {
		s.archive(Expired, now)
	}
}

func (s *Session) revive(now time.Time) {
	if s.early(now) {
		s.Status, s.Reason, s.ArchivedAt = Active, "", time.Time{}
	}
}

// atOnce is the number of sessions that are changed concurrently, which share
// commits.
const atOnce = 32

// each changes the sessions that match the conditions, and returns the number of
// changed ones.
func (s *Sessions) each(ctx context.Context, conditions []store.Condition, fn func(have *Session, now time.Time)) (changed int, err error) {
	var count atomic.Int64
	after := ""
	for {
		page, err := s.o.Documents.Query(ctx, store.DocumentQuery{
			Kind: Kind, OrderBy: "id", Limit: pageSize, Where: append([]store.Condition{{Field: "id", Op: store.Gt, Value: after}}, conditions...),
		})
		if err != nil {
			return int(count.Load()), err
		}
		var group errgroup.Group
		group.SetLimit(atOnce)
		for _, d := range page {
			after = d.ID
			if _, err := decode(d); err != nil {
				continue // do not change a damaged session
			}
			group.Go(func() error {
				_, done, err := s.change(ctx, d.ID, fn)
				if done {
					count.Add(1)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil || len(page) < pageSize {
			return int(count.Load()), err
		}
	}
}

// Replaced is called after sessions were written outside of this package: the
// next call reads again which sessions expire.
func (s *Sessions) Replaced() {
	s.due.mu.Lock()
	defer s.due.mu.Unlock()
	s.due.known, s.due.replaced = false, true
}

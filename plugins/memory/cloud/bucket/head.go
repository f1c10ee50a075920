package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
)

const (
	headName = "head.json"
	format   = 1
	// keptTerms is the number of earlier terms whose ends a head has.
	keptTerms = 32
)

// head is the object that makes a state of the database the current one. It is
// only written on the condition that it is the one that was read, so all of its
// states have one order. No two states are equal: Beat increases with each write
// of a holder, Wanted is set once between two of these.
type head struct {
	Format int `json:"format"`
	// Store identifies the database.
	Store string `json:"store"`
	// Previous is the database that was reset.
	Previous string `json:"previous,omitempty"`
	// Term is the number of the lease; it increases when the lease is taken.
	Term int64 `json:"term"`
	// Beat counts the writes of holders. A holder that is alive increases it.
	Beat int64 `json:"beat"`
	// Holder has the lease; "" = it is released.
	Holder string `json:"holder,omitempty"`
	// LeaseSeconds is the time without a beat after which the lease can be taken.
	LeaseSeconds float64 `json:"lease_seconds"`
	// Wanted is a device that waits for the lease.
	Wanted string `json:"wanted,omitempty"`
	// Version counts the published states.
	Version int64 `json:"version"`
	// Ended has the versions at the end of the last terms, the latest last.
	Ended []ended `json:"ended,omitempty"`

	PageSize int    `json:"page_size,omitempty"`
	Pages    uint32 `json:"pages"`
	// Segments have the pages, later ones over earlier ones.
	Segments []segment `json:"segments"`
}

// ended is the last version of a term.
type ended struct {
	Term    int64 `json:"term"`
	Version int64 `json:"version"`
}

func (h head) lease() time.Duration { return time.Duration(h.LeaseSeconds * float64(time.Second)) }

// endOf returns the last version of a term, if it has ended and is not forgotten.
func (h head) endOf(term int64) (version int64, ok bool) {
	for _, e := range h.Ended {
		if e.Term == term {
			return e.Version, true
		}
	}
	return 0, false
}

// read reads the head and its version in the bucket; ErrNotFound if there is
// none.
func readHead(ctx context.Context, b *objstore.Bucket) (h head, version string, err error) {
	o, r, err := b.Get(ctx, headName, 0, objstore.All)
	if err != nil {
		return head{}, "", err
	}
	data, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return head{}, "", err
	}
	if err := json.Unmarshal(data, &h); err != nil || h.Format < 1 || h.Store == "" {
		return head{}, "", tea.Errorf(tea.InternalError, "%s%s is not the head of a memory; restore it, or set another prefix in settings.memory.url", b.Address(), headName)
	}
	if h.Format > format {
		return head{}, "", tea.Errorf(tea.DependencyMissing, "the memory in %s was written by a newer version (format %d, this one supports %d); install that version of the memory plugin", b.Address(), h.Format, format)
	}
	return h, o.Version, nil
}

// writeHead replaces the head that has a version.
func writeHead(ctx context.Context, b *objstore.Bucket, h head, version string) (string, error) {
	data, err := json.Marshal(h)
	if err != nil {
		return "", err
	}
	o, err := b.Put(ctx, headName, bytes.NewReader(data), objstore.PutOptions{Match: version, ContentType: "application/json"})
	return o.Version, err
}

// lostError is the error of a call whose lease was taken by another device.
type lostError struct {
	holder string
	// published reports that the last write of the head took effect before.
	published bool
	// unknown reports that it is not known whether it did.
	unknown bool
}

func (e *lostError) Error() string {
	text := "the lease of the memory was taken by " + e.holder
	if e.holder == "" {
		text = "the lease of the memory was taken by another device, which has released it"
	}
	if e.unknown {
		text += ", and it is not known whether the write was published before"
	}
	return text
}

// typed returns the error for a caller.
func (e *lostError) typed() error {
	t := tea.Errorf(tea.ConnectionError, "%w", error(e))
	t.Retryable = true
	return t
}

// grip is the lease of this device, as far as it knows. Its methods are called by
// one goroutine at a time, except valid and age.
type grip struct {
	bucket  *objstore.Bucket
	self    string
	current head
	version string
	// stale reports that a write of the head has failed, so that it is not known
	// which one is current.
	stale bool
	// length is that of the lease.
	length time.Duration
	// proven is when the last successful write of the head began.
	proven atomic.Pointer[time.Time]
}

// swap changes the head. It is repeated until it is known whether the change was
// made: done reports whether a head that was read has it already.
func (g *grip) swap(ctx context.Context, change func(*head), done func(head) bool) error {
	for {
		if g.stale {
			if err := g.reread(ctx); err != nil {
				return err
			}
			if done(g.current) {
				return nil
			}
		}
		next := g.current
		next.Segments, next.Ended = slices.Clone(next.Segments), slices.Clone(next.Ended)
		change(&next)
		next.Beat++
		began := time.Now()
		version, err := writeHead(ctx, g.bucket, next, g.version)
		if err == nil {
			g.current, g.version = next, version
			g.proven.Store(&began)
			return nil
		}
		g.stale = true
		if !errors.Is(err, objstore.ErrConflict) {
			return err
		}
	}
}

// reread reads the head after a failed write. It is an error if this term has
// ended.
func (g *grip) reread(ctx context.Context) error {
	now, version, err := readHead(ctx, g.bucket)
	if errors.Is(err, objstore.ErrNotFound) {
		return &lostError{holder: "someone who removed " + headName, unknown: true}
	}
	if err != nil {
		return err
	}
	// Without a holder it is this device that has released the lease.
	if now.Store != g.current.Store || now.Term != g.current.Term || now.Holder != g.self && now.Holder != "" {
		lost := &lostError{holder: now.Holder, unknown: true}
		if version, ok := now.endOf(g.current.Term); ok && now.Store == g.current.Store {
			lost.unknown, lost.published = false, version > g.current.Version
		}
		return lost
	}
	g.current, g.version, g.stale = now, version, false
	return nil
}

// safe is the part of the lease in which the holder acts without a new proof: its
// clock may run at another rate than that of the device that waits.
const safe = 0.75

// valid reports whether no other device can have taken the lease yet. Both
// clocks count: the monotonic one can stand still while the device sleeps, the
// other one can be set back.
func (g *grip) valid() bool { return g.age() < time.Duration(safe*float64(g.length)) }

// age is the time since the last successful write of the head.
func (g *grip) age() time.Duration { return sinceBoth(*g.proven.Load()) }

func sinceBoth(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// take takes the lease. previous is the head before it.
func (g *grip) take(ctx context.Context, previous head, version string, lease time.Duration) error {
	next := previous
	next.Ended = append(slices.Clone(previous.Ended), ended{previous.Term, previous.Version})
	if n := len(next.Ended); n > keptTerms {
		next.Ended = next.Ended[n-keptTerms:]
	}
	next.Term++
	next.Beat++
	next.Holder, next.LeaseSeconds = g.self, lease.Seconds()
	if next.Wanted == g.self {
		next.Wanted = ""
	}
	return g.establish(ctx, next, version)
}

// create writes the first head.
func (g *grip) create(ctx context.Context, lease time.Duration) error {
	return g.establish(ctx, head{Format: format, Store: rand.Text(), Term: 1, Beat: 1, Holder: g.self, LeaseSeconds: lease.Seconds(), Segments: []segment{}}, objstore.Absent)
}

func (g *grip) establish(ctx context.Context, next head, version string) error {
	began := time.Now()
	version, err := writeHead(ctx, g.bucket, next, version)
	if err != nil {
		return err
	}
	g.current, g.version, g.stale, g.length = next, version, false, next.lease()
	g.proven.Store(&began)
	return nil
}

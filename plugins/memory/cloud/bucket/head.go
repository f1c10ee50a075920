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
	// keptTerms is the number of earlier terms whose last versions a head lists.
	keptTerms = 32
)

// head is the object that makes a state of the database the current one. Each write is conditional on the head that was
// read, so all states are ordered. All heads differ: Beat increases with each write of a holder, and Wanted is set at
// most once between two such writes.
type head struct {
	Format int `json:"format"`
	// Store identifies the database.
	Store string `json:"store"`
	// Previous is the database before a reset.
	Previous string `json:"previous,omitempty"`
	// Term is the number of the lease; it increases when the lease is taken.
	Term int64 `json:"term"`
	// Beat counts the writes of holders. A live holder increases it.
	Beat int64 `json:"beat"`
	// Holder holds the lease; "" = it is released.
	Holder string `json:"holder,omitempty"`
	// LeaseSeconds is the time without a beat after which the lease can be taken.
	LeaseSeconds float64 `json:"lease_seconds"`
	// Wanted is a device that waits for the lease.
	Wanted string `json:"wanted,omitempty"`
	// Version counts the published states.
	Version int64 `json:"version"`
	// Ended has the last versions of the last terms, the latest last.
	Ended []ended `json:"ended,omitempty"`

	PageSize int    `json:"page_size,omitempty"`
	Pages    uint32 `json:"pages"`
	// Segments have the pages. Pages of later segments replace pages of earlier
	// ones.
	Segments []segment `json:"segments"`
}

// ended is the last version of a term.
type ended struct {
	Term    int64 `json:"term"`
	Version int64 `json:"version"`
}

func (h head) lease() time.Duration { return time.Duration(h.LeaseSeconds * float64(time.Second)) }

// endOf returns the last version of an ended term, if the head still has it.
func (h head) endOf(term int64) (version int64, ok bool) {
	for _, e := range h.Ended {
		if e.Term == term {
			return e.Version, true
		}
	}
	return 0, false
}

// readHead reads the head and its version in the bucket. The error wraps
// ErrNotFound if there is no head.
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

// writeHead replaces the head if it has the version.
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
	// published reports whether the last write of the head took effect before the lease was lost.
	published bool
	// unknown reports whether this is unknown.
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

// lease is this device's view of its lease. Its methods must not be called concurrently, except valid and age.
type lease struct {
	bucket  *objstore.Bucket
	self    string
	current head
	version string
	// stale reports whether a write of the head failed, so that the current head is
	// unknown.
	stale bool
	// length is the duration of the lease.
	length time.Duration
	// renewed is the start time of the last successful write of the head.
	renewed atomic.Pointer[time.Time]
}

// swap changes the head. It retries until it knows whether the change was made; done reports whether a head includes
// it.
func (g *lease) swap(ctx context.Context, change func(*head), done func(head) bool) error {
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
			g.renewed.Store(&began)
			return nil
		}
		g.stale = true
		if !errors.Is(err, objstore.ErrConflict) {
			return err
		}
	}
}

// reread reads the head after a failed write. It returns an error if this term
// has ended.
func (g *lease) reread(ctx context.Context) error {
	now, version, err := readHead(ctx, g.bucket)
	if errors.Is(err, objstore.ErrNotFound) {
		return &lostError{holder: "someone who removed " + headName, unknown: true}
	}
	if err != nil {
		return err
	}
	// A head without a holder means that this device released the lease.
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

// safe is the fraction of the lease during which the holder does not verify it. It is less than 1 because the clocks of
// two devices can run at different rates.
const safe = 0.75

// valid reports whether no other device can have taken the lease yet. It checks
// both clocks: the monotonic clock can stop while the device sleeps, and the wall
// clock can be set back.
func (g *lease) valid() bool { return g.age() < time.Duration(safe*float64(g.length)) }

// age returns the time since the last successful write of the head.
func (g *lease) age() time.Duration { return elapsed(*g.renewed.Load()) }

func elapsed(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// take takes the lease. previous is the current head.
func (g *lease) take(ctx context.Context, previous head, version string, length time.Duration) error {
	next := previous
	next.Ended = append(slices.Clone(previous.Ended), ended{previous.Term, previous.Version})
	if n := len(next.Ended); n > keptTerms {
		next.Ended = next.Ended[n-keptTerms:]
	}
	next.Term++
	next.Beat++
	next.Holder, next.LeaseSeconds = g.self, length.Seconds()
	if next.Wanted == g.self {
		next.Wanted = ""
	}
	return g.establish(ctx, next, version)
}

// create writes the first head.
func (g *lease) create(ctx context.Context, length time.Duration) error {
	return g.establish(ctx, head{Format: format, Store: rand.Text(), Term: 1, Beat: 1, Holder: g.self, LeaseSeconds: length.Seconds(), Segments: []segment{}}, objstore.Absent)
}

func (g *lease) establish(ctx context.Context, next head, version string) error {
	began := time.Now()
	version, err := writeHead(ctx, g.bucket, next, version)
	if err != nil {
		return err
	}
	g.current, g.version, g.stale, g.length = next, version, false, next.lease()
	g.renewed.Store(&began)
	return nil
}

package objects

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Engine is the value of settings.memory.engine for a memory in a Storage.
const Engine = "objects"

const (
	// leafBytes is the size of a leaf without compression.
	leafBytes = 256 << 10
	// cacheBytes bounds the leaves that are kept in memory.
	cacheBytes = 8 << 20
	// maxTries is how often a read is repeated if its objects were merged meanwhile.
	maxTries = 20
)

// DB is a database in a Storage.
type DB struct {
	storage Storage

	refreshing sync.Mutex // held while the head is read

	mu     sync.Mutex
	now    *snapshot
	locked *snapshot // the state that the next write depends on
	lockID int64
	leaves map[string]pairs
	bytes  int // of leaves
}

var _ keyed.DB = (*DB)(nil)

// Open opens a database, without reading it. Close closes the storage.
func Open(storage Storage) *DB {
	return &DB{storage: storage, now: &snapshot{lockID: 1}, lockID: 1, leaves: map[string]pairs{}}
}

// Stores opens the memory in a storage, without reading it.
func Stores(storage Storage, c store.Config) *store.Stores {
	s := records.Open(keyed.Open(keyed.Options{DB: Open(storage), Now: c.Now, InlineBytes: c.InlineBytes, ReadOnly: c.ReadOnly}), c)
	s.Acknowledged = "remote"
	return s
}

func (d *DB) current() *snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *DB) set(s *snapshot) *snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lockID++
	s.lockID = d.lockID
	d.now = s
	return s
}

// pin is the state that the reads of a context see.
type pin struct {
	mu   sync.Mutex
	read *snapshot
}

type pinKey struct{}

// Pin returns a context whose reads see one state, the state of the first read, unless it disappears. Reads with other
// contexts look for a newer state each time.
func (d *DB) Pin(ctx context.Context) context.Context {
	return context.WithValue(ctx, pinKey{}, &pin{})
}

// view returns the state for a read. again is set if an object of the previous state is gone.
func (d *DB) view(ctx context.Context, again bool) (*snapshot, error) {
	p, ok := ctx.Value(pinKey{}).(*pin)
	if !ok {
		return d.refresh(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil || again {
		s, err := d.refresh(ctx)
		if err != nil {
			return nil, err
		}
		p.read = s
	}
	return p.read, nil
}

// read calls fn with the current state, and repeats it while objects of the state are gone.
func (d *DB) read(ctx context.Context, fn func(s *snapshot) error) error {
	for try := range maxTries {
		s, err := d.view(ctx, try > 0)
		if err != nil {
			return err
		}
		if err := fn(s); !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return errContended
}

// Get returns the values of keys.
func (d *DB) Get(ctx context.Context, keys ...string) (all [][]byte, err error) {
	err = d.read(ctx, func(s *snapshot) error {
		all = make([][]byte, len(keys))
		for i, key := range keys {
			if at, found := s.changes.find(key); found {
				all[i] = s.changes[at].Value
				continue
			}
			p, err := d.leaf(ctx, s, s.leafAt(key))
			if err != nil {
				return err
			}
			if at, found := p.find(key); found {
				all[i] = p[at].Value
			}
		}
		return nil
	})
	return all, err
}

// Scan returns the first pairs of a range.
func (d *DB) Scan(ctx context.Context, from, to string, limit int) (all []keyed.Pair, err error) {
	err = d.read(ctx, func(s *snapshot) error {
		all = nil
		for i, start := s.leafAt(from), from; len(all) < limit; i++ {
			end := to
			if i >= 0 && i+1 < len(s.Leaves) {
				end = min(to, string(s.Leaves[i+1].From))
			}
			p, err := d.leaf(ctx, s, i)
			if err != nil {
				return err
			}
			found := merge(p.between(start, end), s.changes.between(start, end)).live()
			all = append(all, found[:min(len(found), limit-len(all))]...)
			if start = end; end == to {
				return nil
			}
		}
		return nil
	})
	return all, err
}

// leaf returns the pairs of a leaf; -1 is an empty leaf.
func (d *DB) leaf(ctx context.Context, s *snapshot, number int) (pairs, error) {
	if number < 0 {
		return nil, nil
	}
	name := s.Leaves[number].Name
	d.mu.Lock()
	p, ok := d.leaves[name]
	d.mu.Unlock()
	if ok {
		return p, nil
	}
	p, err := d.object(ctx, name)
	if err != nil {
		return nil, err
	}
	d.keep(name, p)
	return p, nil
}

// keep caches a leaf and evicts others.
func (d *DB) keep(name string, p pairs) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, twice := d.leaves[name]; twice {
		return
	}
	size := p.size()
	for other, q := range d.leaves {
		if d.bytes+size <= cacheBytes {
			break
		}
		delete(d.leaves, other)
		d.bytes -= q.size()
	}
	d.leaves[name] = p
	d.bytes += size
}

// Lock reads the current state, which the next Write depends on.
func (d *DB) Lock(ctx context.Context) (int64, error) {
	s, err := d.view(ctx, true)
	if err != nil {
		return 0, fmt.Errorf("read the shared memory: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.locked = s
	return s.lockID, nil
}

// Close closes the storage.
func (d *DB) Close() error { return d.storage.Close() }

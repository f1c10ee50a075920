package keyed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// DB is an ordered key-value database. Keys are byte strings, compared byte by byte.
//
// A call whose context has ended fails with the context's error or succeeds.
// Implementations are safe for concurrent use.
type DB interface {
	// Get returns the values of keys as of one instant, nil for a key that does not exist.
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	// Scan returns at most limit pairs from a key up to, not including, another key, in the order of their keys. limit
	// is positive.
	Scan(ctx context.Context, from, to string, limit int) ([]Pair, error)
	// Write executes the operations in order, atomically and durably. Only the process that holds the lock calls it. An
	// error that wraps ErrChanged means that nothing was written.
	Write(ctx context.Context, ops []Op) error
	// Lock returns an error if another process writes to the database. Otherwise it returns a number that changes if
	// the lock was lost in between.
	Lock(ctx context.Context) (tenure int64, err error)
	// Close releases the lock.
	Close() error
}

// ErrChanged is wrapped by the error of a Write to a database that another process has changed since Lock. The caller
// reads again what the write depends on.
var ErrChanged = errors.New("another process has changed the memory")

// Pair is a key with its value.
type Pair struct {
	Key   string
	Value []byte
}

// Op sets the value of a key. A nil Value deletes the key, or, if To is set, all
// keys from Key up to To.
type Op struct {
	Key, To string
	Value   []byte
}

// Options configure a Database. DB, Now and InlineBytes are needed.
type Options struct {
	DB          DB
	Now         func() time.Time
	InlineBytes int
	ReadOnly    string // see store.Config
}

// Database is an open memory. It is safe for concurrent use.
type Database struct {
	o Options

	writing sync.Mutex // held by a write
	lockID  int64      // the lock when state was read; 0 = not read
	state   state
}

// state has the numbers that a writer assigns.
type state struct {
	identity string
	id       int64 // the last id of a record
	seq      map[store.Feed]int64
}

// Open opens a database without reading it.
func Open(o Options) *Database { return &Database{o: o} }

// tx has the operations of a write.
type tx struct {
	d    *Database
	ops  []Op
	next state
	refs map[string]ref // of large values, by hash
	// dimensions are the dimensions of collections; created are the new collections.
	dimensions, created map[string]int
}

// maxTries bounds how often a write is repeated because of concurrent writes.
const maxTries = 20

// write runs fn and writes its operations atomically. Writes are serialized. fn can run more than once.
func (d *Database) write(ctx context.Context, fn func(t *tx) error) error {
	if d.o.ReadOnly != "" {
		return tea.Errorf(tea.PermissionDenied, "the memory is %w: %s", store.ErrReadOnly, d.o.ReadOnly)
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	err := ErrChanged
	for try := 0; errors.Is(err, ErrChanged) && try < maxTries; try++ {
		err = d.tryWrite(ctx, fn)
	}
	return err
}

func (d *Database) tryWrite(ctx context.Context, fn func(t *tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	lockID, err := d.o.DB.Lock(ctx)
	if err != nil {
		return err
	}
	if lockID != d.lockID {
		if err := d.begin(ctx); err != nil {
			return err
		}
		d.lockID = lockID
	}
	t := &tx{d: d, next: d.state.clone(), refs: map[string]ref{}, dimensions: map[string]int{}, created: map[string]int{}}
	if err := fn(t); err != nil || len(t.ops) == 0 {
		return err
	}
	t.set(stateKey, t.next.encode())
	if err := ctx.Err(); err != nil {
		return err
	}
	// Once begun, the write must not be interrupted, because its outcome would be unknown.
	if err := d.o.DB.Write(context.WithoutCancel(ctx), t.ops); err != nil {
		d.lockID = 0
		return fmt.Errorf("write to the memory: %w", err)
	}
	d.state = t.next
	return nil
}

// begin reads the state. A new database gets an identity.
func (d *Database) begin(ctx context.Context) error {
	s, err := d.readState(ctx)
	if err != nil {
		return err
	}
	if s.identity == "" {
		s.identity = newIdentity()
		if err := d.o.DB.Write(ctx, []Op{{Key: stateKey, Value: s.encode()}}); err != nil {
			return fmt.Errorf("create the memory: %w", err)
		}
	}
	d.state = s
	return nil
}

func newIdentity() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // it never fails
	return hex.EncodeToString(raw[:])
}

// readState reads the state of the database. A database without an identity is new.
func (d *Database) readState(ctx context.Context) (state, error) {
	found, err := d.o.DB.Get(ctx, stateKey)
	if err != nil {
		return state{}, fmt.Errorf("read the memory's state: %w", err)
	}
	return decodeState(found[0])
}

// pinner is an optional interface of a DB whose reads are requests.
type pinner interface {
	// Pin returns a context whose reads see one state.
	Pin(ctx context.Context) context.Context
}

func (d *Database) pin(ctx context.Context) context.Context {
	if p, ok := d.o.DB.(pinner); ok {
		return p.Pin(ctx)
	}
	return ctx
}

func (t *tx) set(key string, value []byte) { t.ops = append(t.ops, Op{Key: key, Value: value}) }

func (t *tx) remove(key string) { t.ops = append(t.ops, Op{Key: key}) }

// slot is the row and the tombstone of a name.
type slot struct {
	name store.RecordName
	row  *row       // nil = none; empty if it is damaged
	tomb *tombstone // nil = none
	// damaged is why the row cannot be read. It can be replaced and deleted.
	damaged error
}

func (d *Database) slots(ctx context.Context, names ...store.RecordName) ([]slot, error) {
	keys := make([]string, 0, 2*len(names))
	for _, n := range names {
		keys = append(keys, rowKey(n), tombKey(n))
	}
	found, err := d.o.DB.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	all := make([]slot, len(names))
	for i, n := range names {
		all[i].name = n
		if raw := found[2*i]; raw != nil {
			if all[i].row, err = decodeRow(raw); err != nil {
				all[i].row, all[i].damaged = &row{}, damagedRow(n, err)
			}
		}
		if raw := found[2*i+1]; raw != nil {
			if all[i].tomb, err = decodeTombstone(raw); err != nil {
				all[i].tomb = &tombstone{}
			}
		}
	}
	return all, nil
}

func damagedRow(n store.RecordName, err error) error {
	return tea.Errorf(tea.InternalError, "the row of %q in %s is damaged: %w", n.Key, n.Feed, err)
}

// put writes a row into a slot. It sets the change number, and the row's id unless the slot has one.
func (t *tx) put(s slot, r *row) {
	t.forget(s)
	r.id = s.id()
	if r.id == 0 {
		t.next.id++
		r.id = t.next.id
		t.set(idKey(s.name.Feed, r.id), []byte(rowKey(s.name)))
	} else if s.row == nil {
		t.set(idKey(s.name.Feed, r.id), []byte(rowKey(s.name)))
	}
	r.seq = t.number(s.name.Feed)
	t.set(rowKey(s.name), r.encode())
	t.set(feedKey(s.name.Feed, r.seq), []byte(rowKey(s.name)))
}

// delete replaces a row with a tombstone. swept reports whether the record expired, which is not a deletion for other
// devices.
func (t *tx) delete(s slot, swept bool) {
	t.forget(s)
	t.remove(rowKey(s.name))
	t.remove(idKey(s.name.Feed, s.row.id))
	tomb := tombstone{id: s.row.id, seq: t.number(s.name.Feed), at: t.d.o.Now().UnixMicro(), swept: swept}
	t.set(tombKey(s.name), tomb.encode())
	t.set(feedKey(s.name.Feed, tomb.seq), []byte(tombKey(s.name)))
}

// forget removes the last change and the tombstone of a slot.
func (t *tx) forget(s slot) {
	if s.row != nil {
		t.remove(feedKey(s.name.Feed, s.row.seq))
	}
	if s.tomb != nil {
		t.remove(feedKey(s.name.Feed, s.tomb.seq))
		t.remove(tombKey(s.name))
	}
}

func (s slot) id() int64 {
	switch {
	case s.row != nil:
		return s.row.id
	case s.tomb != nil:
		return s.tomb.id
	}
	return 0
}

func (t *tx) number(feed store.Feed) int64 {
	t.next.seq[feed]++
	return t.next.seq[feed]
}

// scanBatch is how many pairs are read at a time.
const scanBatch = 500

// each calls fn with all pairs of a range until it returns false.
func (d *Database) each(ctx context.Context, from, to string, fn func(Pair) (bool, error)) error {
	return d.eachBatch(ctx, from, to, scanBatch, fn)
}

func (d *Database) eachBatch(ctx context.Context, from, to string, batch int, fn func(Pair) (bool, error)) error {
	for {
		pairs, err := d.o.DB.Scan(ctx, from, to, batch)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if more, err := fn(p); err != nil || !more {
				return err
			}
		}
		if len(pairs) < batch {
			return nil
		}
		from = pairs[len(pairs)-1].Key + "\x00"
		batch = min(4*batch, scanBatch)
	}
}

// Inspect returns the numbers of records and the sizes in bytes by part.
func (d *Database) Inspect(ctx context.Context) (entries, bytes map[string]int64, err error) {
	entries, bytes = map[string]int64{"ltm": 0, "vectors": 0}, map[string]int64{}
	for _, feed := range store.Feeds() {
		err = errors.Join(err, d.each(ctx, string(rowTable(feed)), string(rowTable(feed)+1), func(p Pair) (bool, error) {
			name := string(feed)
			if feed == store.DocumentFeed {
				name = nameOf(p.Key).Space
			}
			entries[name]++
			bytes["rows"] += int64(len(p.Key) + len(p.Value))
			return true, nil
		}))
	}
	// Sizes are stored with the reference counts, so contents are not read.
	return entries, bytes, errors.Join(err, d.each(ctx, string(rune(refTable)), string(rune(refTable+1)), func(p Pair) (bool, error) {
		_, size := decodeRef(p.Value)
		bytes["blobs"] += size
		return true, nil
	}))
}

// Reset removes all records. The database gets a new identity.
func (d *Database) Reset(ctx context.Context) error {
	return d.write(ctx, func(t *tx) error {
		t.ops = append(t.ops, Op{Key: "\x00", To: "\xff"})
		t.next = state{identity: newIdentity(), seq: map[store.Feed]int64{}}
		return nil
	})
}

package syncing

import (
	"context"
	"encoding/json"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// absent is the pending hash of a record that is being deleted at the remote.
const absent = "-"

// Synced is the last state of a record that both sides had.
type Synced struct {
	Hash    string // "" = no record
	Pending string // the hash that is being written to the remote; "" = none
	Expires time.Time
}

// None reports whether a is the zero state.
func (a Synced) None() bool { return a.Hash == "" && a.Pending == "" }

// SyncedRecord is the synchronised state of the record with an id. If it is None,
// the record is removed.
type SyncedRecord struct {
	ID string
	Synced
}

// Numbers are the read positions in the feeds of both sides.
type Numbers struct{ Local, Remote int64 }

// Base stores the state that a device has in common with its remotes. The ids are defined by this package. It is safe
// for concurrent use.
type Base interface {
	// SyncedStates returns the synchronised states of records, by their ids.
	SyncedStates(ctx context.Context, ids []string) (map[string]Synced, error)
	// IDs returns the first ids between after and before, in order.
	IDs(ctx context.Context, after, before string, limit int) ([]string, error)
	// SetSynced writes the synchronised states of records, atomically.
	SetSynced(ctx context.Context, all ...SyncedRecord) error
	// Numbers returns the numbers with an id; the zero value if there are none.
	Numbers(ctx context.Context, id string) (Numbers, error)
	SetNumbers(ctx context.Context, id string, n Numbers) error
}

// base is the state synchronised with one remote.
type base struct {
	Base
	remote string
}

func (b base) id(name store.RecordName) string {
	return list(b.remote, string(name.Feed), name.Space, name.Key)
}

func (b base) syncedRecord(name store.RecordName, a Synced) SyncedRecord {
	return SyncedRecord{ID: b.id(name), Synced: a}
}

func list(texts ...string) string {
	raw, _ := json.Marshal(texts) // it never fails
	return string(raw)
}

func (b base) read(ctx context.Context, names []store.RecordName) (map[store.RecordName]Synced, error) {
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = b.id(name)
	}
	found, err := b.SyncedStates(ctx, ids)
	if err != nil {
		return nil, err
	}
	byName := make(map[store.RecordName]Synced, len(found))
	for i, name := range names {
		if a, ok := found[ids[i]]; ok {
			byName[name] = a
		}
	}
	return byName, nil
}

// after returns the names of the records of a feed, or of a space in it, after an id; "" = from the beginning.
func (b base) after(ctx context.Context, id string, limit int, of ...string) (names []store.RecordName, last string, err error) {
	prefix := list(append([]string{b.remote}, of...)...)
	prefix = prefix[:len(prefix)-1] + ","
	ids, err := b.IDs(ctx, max(id, prefix), prefix+"\U0010FFFF", limit)
	for _, last = range ids {
		var parts [4]string
		name := store.RecordName{}
		if json.Unmarshal([]byte(last), &parts) == nil {
			name = store.RecordName{Feed: store.Feed(parts[1]), Space: parts[2], Key: parts[3]}
		}
		if name.Feed != "" && !isMark(name) { // earlier versions synchronised the marks of other devices
			names = append(names, name)
		}
	}
	return names, last, err
}

func (b base) numbers(ctx context.Context, of ...string) (Numbers, error) {
	return b.Numbers(ctx, list(append([]string{b.remote}, of...)...))
}

func (b base) setNumbers(ctx context.Context, n Numbers, of ...string) error {
	return b.SetNumbers(ctx, list(append([]string{b.remote}, of...)...), n)
}

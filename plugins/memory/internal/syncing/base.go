package syncing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// absent is the pending hash of a record that is being deleted at the remote.
const absent = "-"

// agreed is what both sides had of a record.
type agreed struct {
	hash    string // "" = no record
	pending string // what is being written to the remote; "" = nothing
	expires time.Time
}

// base is the table of what is agreed with one remote.
type base struct {
	engine store.QueryEngine
	remote string
}

func (b base) id(name store.RecordName) string {
	return list(b.remote, string(name.Feed), name.Space, name.Key)
}

// list returns the JSON list of texts.
func list(texts ...string) string {
	raw, _ := json.Marshal(texts) // it never fails
	return string(raw)
}

// lookUp is how many records one statement looks up.
const lookUp = 500

func (b base) read(ctx context.Context, names []store.RecordName) (map[store.RecordName]agreed, error) {
	byID := make(map[string]store.RecordName, len(names))
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = b.id(name)
		byID[ids[i]] = name
	}
	found := make(map[store.RecordName]agreed, len(names))
	for part := range slices.Chunk(ids, lookUp) {
		in, args := store.InList(part)
		rows, err := b.engine.Query(ctx, "SELECT id, hash, pending, expires_at FROM tea_sync_base WHERE id IN "+in, args...)
		var id string
		var a agreed
		var expires int64
		err = store.Scan(rows, err, func() {
			a.expires = clock.FromMicro(expires)
			found[byID[id]] = a
		}, &id, &a.hash, &a.pending, &expires)
		if err != nil {
			return nil, fmt.Errorf("read what is synchronised: %w", err)
		}
	}
	return found, nil
}

// after returns the names of the feed's records that follow an id, "" = the
// first ones.
func (b base) after(ctx context.Context, feed store.Feed, id string, limit int) (names []store.RecordName, last string, err error) {
	prefix := list(b.remote, string(feed))
	prefix = prefix[:len(prefix)-1] + ","
	rows, err := b.engine.Query(ctx, "SELECT id FROM tea_sync_base WHERE id > ? AND id < ? ORDER BY id LIMIT ?", max(id, prefix), prefix+"\U0010FFFF", limit)
	err = store.Scan(rows, err, func() {
		var parts [4]string
		if json.Unmarshal([]byte(last), &parts) == nil {
			names = append(names, store.RecordName{Feed: feed, Space: parts[2], Key: parts[3]})
		}
	}, &last)
	return names, last, err
}

// set writes what is agreed about a record.
func (b base) set(ctx context.Context, tx store.Tx, name store.RecordName, a agreed) error {
	if a.hash == "" && a.pending == "" {
		_, err := tx.Exec(ctx, "DELETE FROM tea_sync_base WHERE id = ?", b.id(name))
		return err
	}
	expires := int64(0)
	if !a.expires.IsZero() {
		expires = a.expires.UnixMicro()
	}
	_, err := tx.Exec(ctx, `INSERT INTO tea_sync_base VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, pending = excluded.pending, expires_at = excluded.expires_at`, b.id(name), a.hash, a.pending, expires)
	return err
}

// numbers are how far the feeds of both sides were read.
type numbers struct{ local, remote int64 }

func (b base) numbers(ctx context.Context, feed store.Feed) (n numbers, err error) {
	rows, err := b.engine.Query(ctx, "SELECT local_seq, remote_seq FROM tea_sync WHERE id = ?", list(b.remote, string(feed)))
	err = store.Scan(rows, err, func() {}, &n.local, &n.remote)
	return n, err
}

func (b base) setNumbers(ctx context.Context, feed store.Feed, n numbers) error {
	return b.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO tea_sync VALUES (?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET local_seq = excluded.local_seq, remote_seq = excluded.remote_seq`, list(b.remote, string(feed)), n.local, n.remote)
		return err
	})
}

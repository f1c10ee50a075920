package embedded

import (
	"context"
	"fmt"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// base stores the state that this device and its remotes have in common, in tables of
// the embedded database.
type base struct{ engine store.QueryEngine }

// Base returns the state that the memory has in common with its remotes.
func (d *Driver) Base() syncing.Base { return base{d.engine} }

func (b base) SyncedStates(ctx context.Context, ids []string) (map[string]syncing.Synced, error) {
	found := make(map[string]syncing.Synced, len(ids))
	err := eachPart(ids, func(list string, args []any) error {
		rows, err := b.engine.Query(ctx, "SELECT id, hash, pending, expires_at FROM tea_sync_base WHERE id IN "+list, args...)
		var id string
		var a syncing.Synced
		var expires int64
		return store.Scan(rows, err, func() {
			a.Expires = clock.FromMicro(expires)
			found[id] = a
		}, &id, &a.Hash, &a.Pending, &expires)
	})
	if err != nil {
		return nil, fmt.Errorf("read what is synchronised: %w", err)
	}
	return found, nil
}

func (b base) IDs(ctx context.Context, after, before string, limit int) (all []string, err error) {
	rows, err := b.engine.Query(ctx, "SELECT id FROM tea_sync_base WHERE id > ? AND id < ? ORDER BY id LIMIT ?", after, before, limit)
	var id string
	err = store.Scan(rows, err, func() { all = append(all, id) }, &id)
	return all, err
}

func (b base) SetSynced(ctx context.Context, all ...syncing.SyncedRecord) error {
	return b.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error { return SetSyncedIn(ctx, tx, all) })
}

// SetSyncedIn is SetSynced in a transaction of the database.
func SetSyncedIn(ctx context.Context, tx store.Tx, all []syncing.SyncedRecord) error {
	for _, a := range all {
		if a.None() {
			if _, err := tx.Exec(ctx, "DELETE FROM tea_sync_base WHERE id = ?", a.ID); err != nil {
				return err
			}
			continue
		}
		expires := int64(0)
		if !a.Expires.IsZero() {
			expires = a.Expires.UnixMicro()
		}
		_, err := tx.Exec(ctx, `INSERT INTO tea_sync_base VALUES (?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, pending = excluded.pending, expires_at = excluded.expires_at`, a.ID, a.Hash, a.Pending, expires)
		if err != nil {
			return err
		}
	}
	return nil
}

func (b base) Numbers(ctx context.Context, id string) (n syncing.Numbers, err error) {
	rows, err := b.engine.Query(ctx, "SELECT local_seq, remote_seq FROM tea_sync WHERE id = ?", id)
	err = store.Scan(rows, err, func() {}, &n.Local, &n.Remote)
	return n, err
}

func (b base) SetNumbers(ctx context.Context, id string, n syncing.Numbers) error {
	return b.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO tea_sync VALUES (?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET local_seq = excluded.local_seq, remote_seq = excluded.remote_seq`, id, n.Local, n.Remote)
		return err
	})
}

package keyed

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
)

// Base returns the synchronised state of the records.
func (d *Database) Base() syncing.Base { return base{d} }

// base has a pair for each synchronised record, and one for each feed.
type base struct{ d *Database }

func (b base) SyncedStates(ctx context.Context, ids []string) (map[string]syncing.Synced, error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = tableKey(syncedTable, id)
	}
	raw, err := b.d.o.DB.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	found := make(map[string]syncing.Synced, len(ids))
	for i, id := range ids {
		if raw[i] == nil {
			continue
		}
		var a syncing.Synced
		var expires int64
		c := cursor{raw: raw[i]}
		c.texts(&a.Hash, &a.Pending)
		c.numbers(&expires)
		if a.Expires = clock.FromMicro(expires); c.err == nil { // otherwise the record is compared again
			found[id] = a
		}
	}
	return found, nil
}

func (b base) IDs(ctx context.Context, after, before string, limit int) (all []string, err error) {
	pairs, err := b.d.o.DB.Scan(ctx, tableKey(syncedTable, after)+"\x00", tableKey(syncedTable, before), limit)
	for _, p := range pairs {
		all = append(all, p.Key[1:])
	}
	return all, err
}

func (b base) SetSynced(ctx context.Context, all ...syncing.SyncedRecord) error {
	return b.d.write(ctx, func(t *tx) error {
		for _, a := range all {
			t.setSynced(a)
		}
		return nil
	})
}

func (t *tx) setSynced(a syncing.SyncedRecord) {
	key := tableKey(syncedTable, a.ID)
	if a.None() {
		t.remove(key)
		return
	}
	expires := int64(0)
	if !a.Expires.IsZero() {
		expires = a.Expires.UnixMicro()
	}
	raw := appendTexts(nil, a.Hash, a.Pending)
	t.set(key, append(raw, encodeNumbers(expires)...))
}

func (b base) Numbers(ctx context.Context, id string) (n syncing.Numbers, err error) {
	raw, err := b.d.o.DB.Get(ctx, tableKey(numbersTable, id))
	if err != nil || raw[0] == nil {
		return n, err
	}
	c := cursor{raw: raw[0]}
	if c.numbers(&n.Local, &n.Remote); c.err != nil {
		return syncing.Numbers{}, nil //nolint:nilerr // everything is compared again
	}
	return n, nil
}

func (b base) SetNumbers(ctx context.Context, id string, n syncing.Numbers) error {
	return b.d.write(ctx, func(t *tx) error {
		t.set(tableKey(numbersTable, id), encodeNumbers(n.Local, n.Remote))
		return nil
	})
}

package longterm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	columns = "id, key, value, metadata, content_hash, created_at, updated_at, expires_at"
	// withoutValue are the columns of entries whose values are not needed yet.
	withoutValue = "id, key, NULL, metadata, content_hash, created_at, updated_at, expires_at"
)

// Retrieve returns the live entry under key.
func (m *Memory) Retrieve(ctx context.Context, namespace, key string) (store.Memory, error) {
	if err := checkNamespace(namespace); err != nil {
		return store.Memory{}, err
	}
	if err := m.ready(ctx); err != nil {
		return store.Memory{}, err
	}
	if !storable(key) {
		return store.Memory{}, notFound(key)
	}
	found, err := m.content(ctx, namespace, key)
	switch {
	case err != nil:
		return store.Memory{}, err
	case found == nil || m.expired(*found):
		return store.Memory{}, notFound(key)
	}
	err = m.fill(ctx, found)
	if errors.Is(err, errRemoved) {
		err = notFound(key)
	}
	return found.Memory, err
}

func notFound(key string) error { return fmt.Errorf("key %q: %w", key, store.ErrNotFound) }

// content returns the entry of a key, nil if there is none. It reads only the needed
// columns, for speed.
func (m *Memory) content(ctx context.Context, namespace, key string) (*entry, error) {
	rows, err := m.o.Engine.Query(ctx, "SELECT value, metadata, content_hash, expires_at FROM ltm WHERE key = ?", rowKey(namespace, key))
	var found *entry
	var value, metadata text
	var hash string
	var expires number
	err = store.Scan(rows, err, func() {
		found = &entry{store.Memory{Namespace: namespace, Key: key, ContentHash: hash}}
		found.hold(value, metadata, expires)
	}, &value, &metadata, &hash, &expires)
	return found, err
}

func (m *Memory) expired(e entry) bool {
	return !e.ExpiresAt.IsZero() && !e.ExpiresAt.After(m.o.Clock.Now())
}

// entry is a row as read. A nil value is in a blob.
type entry struct{ store.Memory }

// read reads rows. The condition follows FROM.
func (m *Memory) read(ctx context.Context, columns, condition string, args ...any) ([]entry, error) {
	rows, err := m.o.Engine.Query(ctx, "SELECT "+columns+" FROM ltm "+condition, args...)
	var found []entry
	var id, created, updated int64
	var key, hash string
	var value, metadata text
	var expires number
	err = store.Scan(rows, err, func() {
		e := entry{store.Memory{ID: id, ContentHash: hash, CreatedAt: clock.FromMicro(created), UpdatedAt: clock.FromMicro(updated)}}
		e.Namespace, e.Key = splitRowKey(key)
		e.hold(value, metadata, expires)
		found = append(found, e)
	}, &id, &key, &value, &metadata, &hash, &created, &updated, &expires)
	return found, err
}

// hold sets the fields of nullable columns.
func (e *entry) hold(value, metadata text, expires number) {
	if value.Valid {
		e.Value = json.RawMessage(value.String)
	}
	if metadata.Valid {
		e.Metadata = json.RawMessage(metadata.String)
	}
	e.ExpiresAt = clock.FromMicro(expires.Int64)
}

// fill loads a value that is in a blob, and verifies a value that is in the row. If the
// blob does not exist, the entry may have changed since its row was read, so it is read
// again. The error is errRemoved if the entry was removed.
func (m *Memory) fill(ctx context.Context, e *entry) error {
	for e.Value == nil {
		text, err := m.loadLarge(ctx, e.ContentHash)
		switch {
		case err == nil:
			e.Value = text
			return nil
		case errors.Is(err, content.ErrDamaged):
			return damaged(e.Key, err)
		case !errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("read the value of key %q: %w", e.Key, err)
		}
		again, err := m.read(ctx, columns, "WHERE key = ?", rowKey(e.Namespace, e.Key))
		switch {
		case err != nil:
			return err
		case len(again) == 0 || m.expired(again[0]):
			return errRemoved
		case again[0].Value == nil && again[0].ContentHash == e.ContentHash:
			return damaged(e.Key, fmt.Errorf("blob %s is missing: %w", e.ContentHash, content.ErrDamaged))
		}
		*e = again[0]
	}
	if content.Hash(e.Value) != e.ContentHash {
		return damaged(e.Key, fmt.Errorf("the row's value: %w", content.ErrDamaged))
	}
	return nil
}

// fillListed is fill for an entry of a list. It does not fail for a damaged entry.
func (m *Memory) fillListed(ctx context.Context, e *entry) error {
	err := m.fill(ctx, e)
	if err == nil && e.Metadata != nil && !json.Valid(e.Metadata) {
		e.Metadata, err = nil, content.ErrDamaged
	}
	if errors.Is(err, content.ErrDamaged) {
		m.o.Logger.Error("an entry is damaged", "key", e.Key, "error", err.Error())
		e.Value, e.Damaged, err = nil, true, nil
	}
	return err
}

// damaged returns the error of a damaged entry, which must differ from not_found.
func damaged(key string, err error) error {
	return tea.Errorf(tea.InternalError, "the value of key %q is damaged; store it again or delete it: %w", key, err)
}

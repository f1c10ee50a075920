package longterm

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

const columns = "id, key, value, metadata, content_hash, created_at, updated_at, expires_at"

// Retrieve gives the live entry under key.
func (m *Memory) Retrieve(ctx context.Context, key string) (store.Memory, error) {
	if err := m.ready(ctx); err != nil {
		return store.Memory{}, err
	}
	if !storable(key) {
		return store.Memory{}, notFound(key)
	}
	found, err := m.content(ctx, key)
	switch {
	case err != nil:
		return store.Memory{}, err
	case found == nil || m.expired(*found):
		return store.Memory{}, notFound(key)
	}
	err = m.fill(ctx, found)
	if errors.Is(err, errGone) {
		err = notFound(key)
	}
	return found.Memory, err
}

func notFound(key string) error { return fmt.Errorf("key %q: %w", key, store.ErrNotFound) }

// content reads what is under a key, nil for nothing. Each column less makes it
// faster.
func (m *Memory) content(ctx context.Context, key string) (*entry, error) {
	rows, err := m.o.Engine.Query(ctx, "SELECT value, metadata, content_hash, expires_at FROM ltm WHERE key = ?", key)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, rows.Err()
	}
	e := &entry{store.Memory{Key: key}}
	var value, metadata sql.NullString
	var expires sql.NullInt64
	if err := rows.Scan(&value, &metadata, &e.ContentHash, &expires); err != nil {
		return nil, err
	}
	e.hold(value, metadata, expires)
	return e, nil
}

func (m *Memory) expired(e entry) bool {
	return !e.ExpiresAt.IsZero() && !e.ExpiresAt.After(m.o.Clock.Now())
}

// List gives live entries in the order of their keys.
func (m *Memory) List(ctx context.Context, list store.List) ([]store.Memory, error) {
	if !utf8.ValidString(list.Prefix) || !utf8.ValidString(list.After) {
		return nil, tea.Errorf(tea.ValidationError, "the prefix %q or the key %q to begin after is not valid UTF-8", list.Prefix, list.After)
	}
	if err := m.ready(ctx); err != nil || list.Limit < 1 {
		return nil, err
	}
	var page []store.Memory
	for {
		// The keys below a prefix lie together, from the prefix itself on.
		want := list.Limit - len(page)
		found, err := m.read(ctx, "SELECT "+columns+` FROM ltm WHERE key > ? AND key >= ? AND (expires_at IS NULL OR expires_at > ?)
			ORDER BY key LIMIT ?`, list.After, list.Prefix, m.o.Clock.Micro(), want)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if list.After = found[i].Key; !strings.HasPrefix(list.After, list.Prefix) {
				return page, nil
			}
			switch err := m.fillListed(ctx, &found[i]); {
			case errors.Is(err, errGone):
			case err != nil:
				return nil, err
			default:
				page = append(page, found[i].Memory)
			}
		}
		if len(found) < want || len(page) == list.Limit {
			return page, nil
		}
	}
}

// entry is a row as it was read: its value, if it is nil, is in a blob.
type entry struct{ store.Memory }

func (m *Memory) read(ctx context.Context, query string, args ...any) ([]entry, error) {
	rows, err := m.o.Engine.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []entry
	for rows.Next() {
		e, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, rows.Err()
}

func scan(rows store.Rows) (e entry, err error) {
	var value, metadata sql.NullString
	var created, updated int64
	var expires sql.NullInt64
	if err := rows.Scan(&e.ID, &e.Key, &value, &metadata, &e.ContentHash, &created, &updated, &expires); err != nil {
		return entry{}, err
	}
	e.hold(value, metadata, expires)
	e.CreatedAt, e.UpdatedAt = clock.FromMicro(created), clock.FromMicro(updated)
	return e, nil
}

// hold takes in columns that may be NULL.
func (e *entry) hold(value, metadata sql.NullString, expires sql.NullInt64) {
	if value.Valid {
		e.Value = json.RawMessage(value.String)
	}
	if metadata.Valid {
		e.Metadata = json.RawMessage(metadata.String)
	}
	e.ExpiresAt = clock.FromMicro(expires.Int64)
}

// fill brings the value of an entry whose value is in a blob. A blob that is
// not there may have gone with a change since the row was read: then the entry
// is read again, and errGone says that it is gone, too.
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
		again, err := m.read(ctx, "SELECT "+columns+" FROM ltm WHERE key = ?", e.Key)
		switch {
		case err != nil:
			return err
		case len(again) == 0 || m.expired(again[0]):
			return errGone
		case again[0].Value == nil && again[0].ContentHash == e.ContentHash:
			return damaged(e.Key, fmt.Errorf("blob %s is missing: %w", e.ContentHash, content.ErrDamaged))
		}
		*e = again[0]
	}
	return nil
}

// fillListed is fill for an entry among others, which one that is damaged must
// not keep from being seen.
func (m *Memory) fillListed(ctx context.Context, e *entry) error {
	err := m.fill(ctx, e)
	if errors.Is(err, content.ErrDamaged) {
		m.o.Logger.Error("a value is damaged", "key", e.Key, "error", err.Error())
		e.Damaged, err = true, nil
	}
	return err
}

// damaged must not look like an entry that was never there.
func damaged(key string, err error) error {
	return tea.Errorf(tea.InternalError, "the value of key %q is damaged; store it again or delete it: %w", key, err)
}

package longterm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// largePrefix is the prefix of the blobs of values that are too large for a row.
const largePrefix = "ltm/"

// shape is how much of rows is read: each column takes time.
type shape int

const (
	named  shape = iota // for a name that the caller knows
	whole               // with key, id and times
	ofFeed              // with number and, for a tombstone, the namespace
)

func (s shape) columns(noBody bool) string {
	columns := "value, metadata, content_hash, expires_at"
	if noBody {
		columns = "'', metadata, content_hash, expires_at"
	}
	if s >= whole {
		columns += ", key, id, created_at, updated_at"
	}
	if s == ofFeed {
		columns += ", seq, ''"
	}
	return columns
}

// Get returns the rows with these names or ids.
func (m *Memory) Get(ctx context.Context, q store.RowQuery) (all []store.Row, err error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	read := func(s shape, column, list string, args []any) error {
		rows, err := m.read(ctx, s, "SELECT "+s.columns(q.NoBody)+" FROM ltm WHERE "+column+" IN "+list, args...)
		if err != nil {
			return err
		}
		rows, _, err = m.load(ctx, rows, 0)
		all = append(all, rows...)
		return err
	}
	if len(q.Names) == 1 && !q.Numbered {
		if all, err = m.read(ctx, named, "SELECT "+named.columns(q.NoBody)+" FROM ltm WHERE key = ?", rowKey(q.Names[0].Space, q.Names[0].Key)); err != nil {
			return nil, err
		}
		for i := range all {
			all[i].RecordName = q.Names[0]
		}
		all, _, err = m.load(ctx, all, 0)
		return all, err
	}
	for part := range slices.Chunk(q.Names, lookUp) {
		keys := make([]string, len(part))
		for i, n := range part {
			keys[i] = rowKey(n.Space, n.Key)
		}
		list, args := store.InList(keys)
		if err := read(ofFeed, "key", list, args); err != nil {
			return nil, err
		}
	}
	if len(q.IDs) > 0 {
		list, args := store.InList(q.IDs)
		err = read(whole, "id", list, args)
	}
	return all, err
}

// read reads rows and tombstones. The body of a value in a blob is nil.
func (m *Memory) read(ctx context.Context, s shape, query string, args ...any) (all []store.Row, _ error) {
	rows, err := m.o.Engine.Query(ctx, query, args...)
	r := store.Row{RecordName: store.RecordName{Feed: store.EntryFeed}}
	var space, key string
	var value, metadata text
	var expires number
	dest := []any{&value, &metadata, &r.Hash, &expires}
	if s >= whole {
		dest = append(dest, &key, &r.ID, &r.Created, &r.Updated)
	}
	if s == ofFeed {
		dest = append(dest, &r.Seq, &space)
	}
	err = store.Scan(rows, err, func() {
		if r.Space, r.Key, r.Deleted = space, key, r.Hash == ""; !r.Deleted {
			r.Space, r.Key = splitRowKey(key)
		}
		r.Body, r.Metadata, r.Expires = nil, metadata.String, expires.Int64
		if value.Valid {
			r.Body = []byte(value.String)
		}
		all = append(all, r)
	}, dest...)
	return all, err
}

// load loads the values that are in blobs, until all values have more than maxBytes; 0 =
// no bound. It returns the number of rows that it has loaded, and the rows without those
// that were removed meanwhile.
func (m *Memory) load(ctx context.Context, rows []store.Row, maxBytes int64) (kept []store.Row, loaded int, err error) {
	kept, size := rows[:0], int64(0)
	for i := range rows {
		r := &rows[i]
		if !r.Deleted {
			if removed, err := m.fill(ctx, r); err != nil {
				return nil, 0, err
			} else if removed {
				continue
			}
		}
		r.Size = int64(len(r.Body))
		if size += r.Size; maxBytes > 0 && size > maxBytes && len(kept) > 0 {
			return kept, i, nil
		}
		if kept = rows[:len(kept)+1]; len(kept) <= i {
			kept[len(kept)-1] = *r
		}
	}
	return kept, len(rows), nil
}

// fill loads a value that is in a blob. If the blob does not exist, the entry may have
// changed since its row was read, so it is read again. It must not hold m.large: it can
// run in a commit that a holder of m.large waits for.
func (m *Memory) fill(ctx context.Context, r *store.Row) (removed bool, err error) {
	for r.Body == nil {
		r.Body, err = m.large.Load(ctx, r.Hash)
		switch {
		case err == nil:
			return false, nil
		case errors.Is(err, content.ErrDamaged):
			m.damaged(r, err)
			return false, nil
		case !errors.Is(err, store.ErrNotFound):
			return false, fmt.Errorf("read the value of key %q: %w", r.Key, err)
		}
		again, err := m.read(ctx, whole, "SELECT "+whole.columns(false)+" FROM ltm WHERE key = ?", rowKey(r.Space, r.Key))
		switch {
		case err != nil || len(again) == 0:
			return true, err
		case again[0].Body == nil && again[0].Hash == r.Hash:
			m.damaged(r, fmt.Errorf("blob %s is missing", r.Hash))
			return false, nil
		}
		again[0].Seq = r.Seq // the place of the change that is read
		*r = again[0]
	}
	return false, nil
}

func (m *Memory) damaged(r *store.Row, err error) {
	m.o.Logger.Error("an entry is damaged", "key", r.Key, "error", err.Error())
	r.Body, r.Damaged = nil, err
}

// maxPage bounds the values of a page.
const maxPage = 16 << 20

// Scan returns rows of a namespace in the order of their keys.
func (m *Memory) Scan(ctx context.Context, q store.RowRange) (page store.RowPage, err error) {
	if err := m.ready(ctx); err != nil {
		return page, err
	}
	// The keys with a prefix are adjacent and begin with the prefix itself.
	from, after := rowKey(q.Space, q.Prefix), ""
	if q.After != "" {
		after = rowKey(q.Space, q.After)
	}
	rows, err := m.read(ctx, whole, "SELECT "+whole.columns(q.NoBody)+" FROM ltm WHERE key > ? AND key >= ? AND (expires_at IS NULL OR expires_at > ?) ORDER BY key LIMIT ?", after, from, q.Live, q.Limit)
	if err != nil {
		return page, err
	}
	page.More = len(rows) == q.Limit
	if n := slices.IndexFunc(rows, func(r store.Row) bool { return r.Space != q.Space || !strings.HasPrefix(r.Key, q.Prefix) }); n >= 0 {
		rows, page.More = rows[:n], false
	}
	bound := int64(maxPage)
	if q.MaxBytes > 0 {
		bound = min(bound, q.MaxBytes)
	}
	var loaded int
	page.Rows, loaded, err = m.load(ctx, rows, bound)
	page.More = page.More || loaded < len(rows)
	return page, err
}

// Changes returns the rows and tombstones after a number.
func (m *Memory) Changes(ctx context.Context, q store.RowChanges) (page store.RowPage, err error) {
	if err := m.ready(ctx); err != nil {
		return page, err
	}
	// One statement, so that no change is missed between two.
	rows, err := m.read(ctx, ofFeed, "SELECT "+ofFeed.columns(false)+" FROM ltm WHERE seq > ? UNION ALL "+
		"SELECT NULL, NULL, '', NULL, key, 0, deleted_at, deleted_at, seq, space FROM tea_deleted WHERE feed = ? AND seq > ? ORDER BY 9 LIMIT ?",
		q.After, string(store.EntryFeed), q.After, q.Limit)
	if err != nil {
		return page, err
	}
	page = deletion.RowPage(q, rows)
	var loaded int
	if page.Rows, loaded, err = m.load(ctx, rows, q.MaxBytes); err == nil && loaded < len(rows) {
		page.Last, page.More = rows[loaded].Seq-1, true
	}
	return page, err
}

package keyed

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

var (
	_ store.Driver       = (*Database)(nil)
	_ store.FileStore    = (*Database)(nil)
	_ store.ContentStore = (*Database)(nil)
	_ store.Inspector    = (*Database)(nil)
	_ store.Resetter     = (*Database)(nil)
)

// State returns the state of a feed.
func (d *Database) State(ctx context.Context, feed store.Feed) (store.FeedState, error) {
	found, err := d.o.DB.Get(ctx, stateKey, tableKey(forgottenTable, string(feed)))
	if err != nil {
		return store.FeedState{}, fmt.Errorf("read the memory's state: %w", err)
	}
	s, err := decodeState(found[0])
	if err != nil {
		return store.FeedState{}, err
	}
	state := store.FeedState{Identity: s.identity, Last: s.seq[feed]}
	if found[1] != nil {
		c := cursor{raw: found[1]}
		c.numbers(&state.Forgotten)
		err = c.err
	}
	return state, err
}

// Get returns rows and tombstones.
func (d *Database) Get(ctx context.Context, q store.RowQuery) ([]store.Row, error) {
	ctx = d.pin(ctx)
	var keys []string
	for _, n := range q.Names {
		keys = append(keys, rowKey(n), tombKey(n))
	}
	if len(q.IDs) > 0 {
		ids := make([]string, len(q.IDs))
		for i, id := range q.IDs {
			ids[i] = idKey(q.Feed, id)
		}
		found, err := d.o.DB.Get(ctx, ids...)
		if err != nil {
			return nil, err
		}
		for _, raw := range found {
			if raw != nil {
				keys = append(keys, string(raw))
			}
		}
	}
	return d.rows(ctx, keys, q.NoBody)
}

func (d *Database) rows(ctx context.Context, keys []string, noBody bool) ([]store.Row, error) {
	found, err := d.o.DB.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	pairs := make([]Pair, 0, len(keys))
	for i, raw := range found {
		if raw != nil {
			pairs = append(pairs, Pair{keys[i], raw})
		}
	}
	return d.toRows(ctx, pairs, noBody)
}

// toRows decodes rows and tombstones and reads the large values. A row whose value was
// replaced meanwhile is read again, and left out if it was removed.
func (d *Database) toRows(ctx context.Context, pairs []Pair, noBody bool) ([]store.Row, error) {
	rows := make([]store.Row, len(pairs))
	var large []int
	for i, p := range pairs {
		n := nameOf(p.Key)
		if isTombKey(p.Key) {
			rows[i] = toTombstone(n, p.Value)
			continue
		}
		r, err := decodeRow(p.Value)
		if err != nil {
			rows[i] = store.Row{RecordName: n, Damaged: damagedRow(n, err)}
			continue
		}
		if rows[i] = r.toRow(n); r.large && !noBody {
			large = append(large, i)
		}
		if noBody {
			rows[i].Body = nil
		}
	}
	gone := map[int]bool{}
	const maxKeys = 64
	for len(large) > 0 {
		some := large[:min(maxKeys, len(large))]
		large = large[len(some):]
		keys := make([]string, len(some))
		for j, i := range some {
			keys[j] = tableKey(largeTable, rows[i].Hash)
		}
		values, err := d.o.DB.Get(ctx, keys...)
		if err != nil {
			return nil, fmt.Errorf("read the values: %w", err)
		}
		for j, i := range some {
			if rows[i].Body = values[j]; values[j] == nil {
				if rows[i], gone[i], err = d.again(ctx, rows[i]); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(gone) == 0 {
		return rows, nil
	}
	kept := rows[:0]
	for i, r := range rows {
		if !gone[i] {
			kept = append(kept, r)
		}
	}
	return kept, nil
}

// again reads a row whose value is missing once more. If the row has not changed, its value is lost, and the
// row is damaged.
func (d *Database) again(ctx context.Context, old store.Row) (now store.Row, gone bool, err error) {
	found, err := d.o.DB.Get(ctx, rowKey(old.RecordName))
	if err != nil || found[0] == nil {
		return old, true, err
	}
	r, err := decodeRow(found[0])
	if err == nil && r.seq == old.Seq {
		return old, false, nil
	}
	rows, err := d.toRows(ctx, []Pair{{rowKey(old.RecordName), found[0]}}, false)
	if err != nil || len(rows) == 0 {
		return old, true, err
	}
	return rows[0], false, nil
}

func (r *row) toRow(n store.RecordName) store.Row {
	row := store.Row{
		RecordName: n, ID: r.id, Seq: r.seq, Version: r.version, Size: r.size, Hash: r.hash, Text: r.text, Metadata: r.metadata,
		Created: r.created, Updated: r.updated, Expires: r.expires,
	}
	if !r.large {
		row.Body = []byte(r.body)
	}
	return row
}

// toTombstone decodes a tombstone. A damaged tombstone counts as swept.
func toTombstone(n store.RecordName, raw []byte) store.Row {
	t, err := decodeTombstone(raw)
	if err != nil {
		return store.Row{RecordName: n, Deleted: true, Swept: true}
	}
	return store.Row{RecordName: n, Deleted: true, Swept: t.swept, ID: t.id, Seq: t.seq, Updated: t.at}
}

// maxBody bounds the bodies of a page.
const maxBody = 4 << 20

// Scan returns rows of a space.
func (d *Database) Scan(ctx context.Context, q store.RowRange) (page store.RowPage, err error) {
	ctx = d.pin(ctx)
	from := rowKey(store.RecordName{Feed: q.Feed, Space: q.Space, Key: q.Prefix})
	to := behind(from)
	if q.After != "" && q.After >= q.Prefix {
		from = rowKey(store.RecordName{Feed: q.Feed, Space: q.Space, Key: q.After}) + "\x00"
	}
	pairs, err := d.o.DB.Scan(ctx, from, to, q.Limit)
	if err != nil {
		return page, err
	}
	page.More = len(pairs) == q.Limit
	if !q.NoBody {
		if n := within(pairs, q.MaxBytes); n < len(pairs) {
			pairs, page.More = pairs[:n], true
		}
	}
	page.Rows, err = d.toRows(ctx, pairs, q.NoBody)
	return page, err
}

// within returns how many rows, at least one, have bodies of at most maxBytes in total.
func within(pairs []Pair, maxBytes int64) int {
	left := int64(maxBody)
	if maxBytes > 0 {
		left = min(left, maxBytes)
	}
	for i, p := range pairs {
		size := int64(len(p.Value))
		if r, err := decodeRow(p.Value); err == nil && !isTombKey(p.Key) {
			size = max(size, r.size)
		}
		if left -= size; left < 0 && i > 0 {
			return i
		}
	}
	return len(pairs)
}

// Changes returns changes of a feed. A record that changed again has its later number.
func (d *Database) Changes(ctx context.Context, q store.RowChanges) (page store.RowPage, err error) {
	ctx = d.pin(ctx)
	state, err := d.State(ctx, q.Feed)
	if err != nil {
		return page, err
	}
	page.Last, page.Forgotten = state.Last, state.Forgotten
	if q.Space != "" {
		spaces, err := d.Spaces(ctx, q.Space)
		if err != nil || len(spaces) == 0 {
			return page, err
		}
		page.Space = spaces[0]
	}
	changes, err := d.o.DB.Scan(ctx, feedKey(q.Feed, q.After+1), feedEnd(q.Feed), q.Limit)
	if err != nil || len(changes) == 0 {
		return page, err
	}
	page.More = len(changes) == q.Limit
	keys := make([]string, len(changes))
	for i, p := range changes {
		keys[i] = string(p.Value)
	}
	found, err := d.o.DB.Get(ctx, keys...)
	if err != nil {
		return page, err
	}
	var pairs []Pair
	var numbers []int64
	for i, raw := range found {
		if raw != nil && (q.Space == "" || nameOf(keys[i]).Space == q.Space) {
			pairs, numbers = append(pairs, Pair{keys[i], raw}), append(numbers, numberOf(changes[i].Key))
		}
	}
	if last := numberOf(changes[len(changes)-1].Key); page.More || last > page.Last {
		page.Last = last
	}
	if n := within(pairs, q.MaxBytes); n < len(pairs) {
		page.Last, page.More = numbers[n-1], true
		pairs = pairs[:n]
	}
	rows, err := d.toRows(ctx, pairs, false)
	at := 0
	for _, r := range rows {
		for at < len(pairs)-1 && nameOf(pairs[at].Key) != r.RecordName { // a row was left out
			at++
		}
		if r.Damaged != nil && r.Seq == 0 { // its own number cannot be read
			r.Seq = numbers[at]
		}
		if r.Seq == numbers[at] {
			page.Rows = append(page.Rows, r)
		}
		at++
	}
	return page, err
}

// Spaces describes collections.
func (d *Database) Spaces(ctx context.Context, names ...string) (all []store.Space, err error) {
	if len(names) > 0 {
		keys := make([]string, len(names))
		for i, name := range names {
			keys[i] = tableKey(collectionTable, name)
		}
		found, err := d.o.DB.Get(ctx, keys...)
		for i, raw := range found {
			if raw != nil {
				all = append(all, toSpace(names[i], raw))
			}
		}
		return all, err
	}
	err = d.each(ctx, tableKey(collectionTable, ""), tableKey(collectionTable+1, ""), func(p Pair) (bool, error) {
		s := toSpace(p.Key[1:], p.Value)
		from := spaceKey(rowTable(store.VectorFeed), s.Name)
		err := d.each(ctx, from, behind(from), func(Pair) (bool, error) { s.Count++; return true, nil })
		all = append(all, s)
		return true, err
	})
	return all, err
}

func toSpace(name string, raw []byte) store.Space {
	s := store.Space{Name: name}
	s.Dimension, s.Born = decodeCollection(raw)
	return s
}

// Contents stores the contents of files.
func (d *Database) Contents() store.BlobStorage { return &blobs{d} }

// Close closes the database.
func (d *Database) Close() error { return d.o.DB.Close() }

// ReadFile returns a file of the text index.
func (d *Database) ReadFile(ctx context.Context, name string) ([]byte, error) {
	found, err := d.o.DB.Get(ctx, tableKey(indexTable, name))
	if err == nil && found[0] == nil {
		err = fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// WriteFile writes a file of the text index.
func (d *Database) WriteFile(ctx context.Context, name string, data []byte) error {
	return d.writeFile(ctx, Op{Key: tableKey(indexTable, name), Value: data})
}

// RemoveFile removes a file of the text index.
func (d *Database) RemoveFile(ctx context.Context, name string) error {
	return d.writeFile(ctx, Op{Key: tableKey(indexTable, name)})
}

func (d *Database) writeFile(ctx context.Context, op Op) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if _, err := d.o.DB.Lock(ctx); err != nil {
		return err
	}
	return d.o.DB.Write(ctx, []Op{op})
}

// ListFiles returns the names of the files of the text index.
func (d *Database) ListFiles(ctx context.Context) (names []string, err error) {
	err = d.each(ctx, tableKey(indexTable, ""), tableKey(indexTable+1, ""), func(p Pair) (bool, error) {
		names = append(names, p.Key[1:])
		return true, nil
	})
	return names, err
}

// MayWrite reports whether this process has the lock.
func (d *Database) MayWrite(ctx context.Context) bool {
	_, err := d.o.DB.Lock(ctx)
	return err == nil
}

package keyed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// flushEvery is after how many changes the index is written to the database. The
// next start reads the rows of later changes.
const flushEvery = 2048

// textIndex is the text index. Its files are in the database. Only the process with
// the lock writes them; others have the same index in memory.
type textIndex struct {
	d *Database

	mu       sync.Mutex // held while the index catches up
	index    *fulltext.Index
	identity string
	last     int64 // the last change that is in the index
	flushed  int64 // the last change that is in its files
	closed   bool
}

// current returns the index with all changes that were acknowledged before.
func (x *textIndex) current(ctx context.Context) (*fulltext.Index, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, errClosed
	}
	s, err := x.d.readState(ctx)
	if err != nil {
		return nil, err
	}
	if x.index != nil && (s.identity != x.identity || s.seq[store.EntryFeed] < x.last) {
		if err := x.reset(); err != nil {
			return nil, err
		}
	}
	if x.index == nil {
		if err := x.open(ctx, s); err != nil {
			return nil, err
		}
	}
	if x.last < s.seq[store.EntryFeed] {
		if err := x.catchUp(ctx); err != nil {
			return nil, fmt.Errorf("bring the text index up to date: %w", err)
		}
	}
	return x.index, nil
}

// reset makes the index empty.
func (x *textIndex) reset() error {
	index := x.index
	x.index, x.last = nil, 0
	return errors.Join(index.Reset(), index.Close())
}

func (x *textIndex) open(ctx context.Context, s state) error {
	_, locked := x.d.o.DB.Lock(ctx)
	readOnly := x.d.o.ReadOnly != "" || locked != nil
	index, err := fulltext.OpenFolder(indexFiles{x.d}, fulltext.Options{Language: x.d.o.Language, ReadOnly: readOnly})
	if err != nil {
		return tea.Errorf(tea.ValidationError, "open the text index: %w", err)
	}
	if lost := index.Lost(); lost != nil && !errors.Is(lost, fs.ErrNotExist) {
		x.d.o.Logger.Warn("the text index is rebuilt", "reason", lost.Error())
	}
	forgotten, err := x.d.forgotten(ctx, store.EntryFeed)
	if err != nil {
		return errors.Join(err, index.Close())
	}
	if w := index.Watermark(); w > s.seq[store.EntryFeed] || w < forgotten {
		if err := index.Reset(); err != nil {
			return errors.Join(err, index.Close())
		}
	}
	x.index, x.identity = index, s.identity
	x.last, x.flushed = index.Watermark(), index.Watermark()
	return nil
}

// catchUp puts the rows that have changed into the index. A row that changes
// meanwhile has a later change, so it reads until there are none.
func (x *textIndex) catchUp(ctx context.Context) error {
	for {
		pairs, err := x.d.o.DB.Scan(ctx, feedKey(store.EntryFeed, x.last+1), feedEnd(store.EntryFeed), scanBatch)
		if err != nil || len(pairs) == 0 {
			return err
		}
		if err := x.apply(ctx, pairs); err != nil {
			return err
		}
		if x.last-x.flushed >= flushEvery {
			x.flushed = x.last
			if err := x.index.Flush(); err != nil {
				x.d.o.Logger.Warn("the text index cannot be written; the next start takes longer", "error", err.Error())
			}
		}
	}
}

// apply puts the rows of a batch of changes into the index.
func (x *textIndex) apply(ctx context.Context, pairs []Pair) error {
	keys := make([]string, len(pairs))
	for i, p := range pairs {
		keys[i] = string(p.Value)
	}
	rows, err := x.d.o.DB.Get(ctx, keys...)
	if err != nil {
		return err
	}
	values, err := x.d.values(ctx, rows)
	if err != nil {
		return err
	}
	for i, p := range pairs {
		if err := x.change(numberOf(p.Key), keys[i], rows[i], values[i]); err != nil {
			return err
		}
	}
	return nil
}

// values returns the values of rows. Those of tombstones and damaged rows are "".
func (d *Database) values(ctx context.Context, rows [][]byte) ([]string, error) {
	all := make([]string, len(rows))
	var at []int
	var keys []string
	for i, raw := range rows {
		r, err := decodeRow(raw)
		if err != nil {
			continue
		}
		if all[i] = r.body; r.large {
			at, keys = append(at, i), append(keys, tableKey(largeTable, r.hash))
		}
	}
	const together = 64 // large values
	for len(keys) > 0 {
		n := min(together, len(keys))
		found, err := d.o.DB.Get(ctx, keys[:n]...)
		if err != nil {
			return nil, err
		}
		for i, raw := range found {
			all[at[i]] = string(raw)
		}
		at, keys = at[n:], keys[n:]
	}
	return all, nil
}

func (x *textIndex) change(seq int64, key string, raw []byte, value string) error {
	x.last = seq
	if raw == nil { // it has changed since: a later change
		return nil
	}
	name := nameOf(key)
	if isTombKey(key) {
		t, err := decodeTombstone(raw)
		if err != nil || t.seq != seq {
			return nil //nolint:nilerr // a damaged tombstone deletes what is not found any more
		}
		return x.index.Delete(t.id, seq)
	}
	r, err := decodeRow(raw)
	if err != nil || r.seq != seq {
		return nil //nolint:nilerr // a damaged row is found by List
	}
	return x.index.Put(fulltext.Document{ID: r.id, Seq: seq, Tag: tag(name.Space), Fields: longterm.Fields(name.Key, value, r.metadata)})
}

func tag(namespace string) string { return "/" + namespace }

func (x *textIndex) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.index == nil {
		return nil
	}
	if err := x.index.Close(); err != nil {
		x.d.o.Logger.Warn("the text index cannot be written; the next start takes longer", "error", err.Error())
	}
	x.index = nil
	return nil
}

// Search finds entries.
func (m *entries) Search(ctx context.Context, q store.Search) (store.Results, error) {
	if err := m.check(ctx); err != nil {
		return store.Results{}, err
	}
	if err := longterm.CheckPrefix(q.Namespace, q.Prefix); err != nil || q.Limit < 1 {
		return store.Results{}, err
	}
	c := collector{skip: q.Skip, limit: q.Limit, maxBytes: q.MaxBytes}
	wanted := func(r *row) bool { return filter.Matches([]byte(r.metadata), q.Metadata) }
	if strings.TrimSpace(q.Text) == "" {
		c.skip = 0
		l := store.List{Namespace: q.Namespace, Prefix: q.Prefix, After: q.After, Limit: q.Limit, KeysOnly: q.KeysOnly}
		err := m.walk(ctx, l, wanted, func(e store.Memory) bool { return c.add(e, 0) })
		return store.Results{Found: c.found, More: c.more}, err
	}
	ranked, err := m.rank(ctx, q)
	if err != nil {
		return store.Results{}, err
	}
	var batch []fulltext.Hit
	size := min(q.Skip+q.Limit+1, scanBatch)
	more := true
	for hit := range ranked.All() {
		if batch = append(batch, hit); len(batch) < size {
			continue
		}
		if more, err = m.take(ctx, q, batch, wanted, &c); err != nil || !more {
			break
		}
		batch, size = batch[:0], scanBatch
	}
	if err == nil && more {
		_, err = m.take(ctx, q, batch, wanted, &c)
	}
	return store.Results{Found: c.found, More: c.more, Cut: ranked.Cut()}, err
}

// rank asks the index, and again if its files are damaged.
func (m *entries) rank(ctx context.Context, q store.Search) (*fulltext.Ranked, error) {
	for try := 0; ; try++ {
		index, err := m.index.current(ctx)
		if err != nil {
			return nil, err
		}
		ranked, err := index.Search(ctx, q.Text, fulltext.SearchOptions{Tag: tag(q.Namespace), Require: longterm.Required(q.Metadata)})
		if try > 0 || !errors.Is(err, fulltext.ErrCorrupt) {
			return ranked, err
		}
		m.index.mu.Lock()
		if err = nil; m.index.index == index {
			err = m.index.reset()
		}
		m.index.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// Statistics are those of the entries for a query, so that other texts can be
// ranked together with them.
func (m *entries) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	index, err := m.index.current(ctx)
	if err != nil {
		return fulltext.Statistics{}, err
	}
	return index.Statistics(ctx, text)
}

// take adds the entries of hits that fit the query, and reports whether there can
// be more.
func (m *entries) take(ctx context.Context, q store.Search, hits []fulltext.Hit, wanted func(*row) bool, c *collector) (bool, error) {
	if len(hits) == 0 {
		return true, nil
	}
	keys := make([]string, len(hits))
	for i, hit := range hits {
		keys[i] = idKey(store.EntryFeed, hit.ID)
	}
	names, err := m.d.o.DB.Get(ctx, keys...)
	if err != nil {
		return false, err
	}
	for i, raw := range names {
		keys[i] = string(raw) // "" for an entry that was removed
	}
	rows, err := m.d.o.DB.Get(ctx, keys...)
	if err != nil {
		return false, err
	}
	for i, hit := range hits {
		r, err := decodeRow(rows[i])
		if err != nil {
			continue
		}
		name := nameOf(keys[i])
		if m.d.expired(r) || !hasPrefix(name, q.Namespace, q.Prefix) || !wanted(r) {
			continue
		}
		e, gone, err := m.memory(ctx, name, r, q.KeysOnly)
		if err != nil {
			return false, err
		}
		if !gone && !c.add(e, hit.Score) {
			return false, nil
		}
	}
	return true, nil
}

// indexFiles are the files of the text index in the database.
type indexFiles struct{ d *Database }

var _ fulltext.Folder = indexFiles{}

func (f indexFiles) Read(name string) ([]byte, error) {
	found, err := f.d.o.DB.Get(context.Background(), tableKey(indexTable, name))
	if err == nil && found[0] == nil {
		err = fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

func (f indexFiles) Write(name string, data []byte) error {
	return f.write(Op{Key: tableKey(indexTable, name), Value: data})
}

func (f indexFiles) Remove(name string) error {
	return f.write(Op{Key: tableKey(indexTable, name)})
}

func (f indexFiles) write(op Op) error {
	f.d.writing.Lock()
	defer f.d.writing.Unlock()
	if _, err := f.d.o.DB.Lock(context.Background()); err != nil {
		return err
	}
	return f.d.o.DB.Write(context.Background(), []Op{op})
}

func (f indexFiles) List() (names []string, err error) {
	err = f.d.each(context.Background(), tableKey(indexTable, ""), tableKey(indexTable+1, ""), func(p Pair) (bool, error) {
		names = append(names, p.Key[1:])
		return true, nil
	})
	return names, err
}

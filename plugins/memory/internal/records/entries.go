package records

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// entries is the long-term memory.
type entries struct {
	closing
	m     *memory
	index textSearcher // replaces the text search of the driver; nil if there is none
}

var _ store.LongTermMemory = (*entries)(nil)

func entryName(namespace, key string) store.RecordName {
	return store.RecordName{Feed: store.EntryFeed, Space: namespace, Key: key}
}

func (s *entries) Store(ctx context.Context, all ...store.Entry) ([]store.Stored, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	contents, err := longterm.ToCanonical(all, s.m.InlineBytes, s.m.Now())
	if err != nil {
		return nil, err
	}
	b := &store.Batch{Atomic: true, Writes: make([]*store.RowWrite, len(all))}
	for i, e := range all {
		b.Writes[i] = &store.RowWrite{Row: entryRow(entryName(e.Namespace, e.Key), contents[i]), Deduplicate: true}
	}
	if err := s.m.write(ctx, b); err != nil || len(all) == 0 {
		return nil, err
	}
	results := make([]store.Stored, len(all))
	for i, w := range b.Writes {
		c := contents[i]
		results[i] = store.Stored{Inlined: c.Inline, ContentHash: c.Hash, ByteSize: w.Size, Created: !w.Result.Live, Deduplicated: w.Result.Same}
	}
	return results, nil
}

func entryRow(n store.RecordName, c longterm.Canonical) store.Row {
	return store.Row{RecordName: n, Body: c.Value, Size: int64(len(c.Value)), Hash: c.Hash, Metadata: c.Metadata, Expires: c.ExpiresAt}
}

// toMemory converts a row. exists is false if the row was removed while its value was read.
func (m *memory) toMemory(ctx context.Context, r *store.Row, keysOnly bool) (e store.Memory, exists bool, err error) {
	if r.Load != nil && !keysOnly {
		loaded, err := r.Load(ctx)
		if err != nil || loaded.Deleted {
			return e, false, err
		}
		r = &loaded
	}
	e = store.Memory{
		ID: r.ID, Namespace: r.Space, Key: r.Key, ContentHash: r.Hash,
		CreatedAt: clock.FromMicro(r.Created), UpdatedAt: clock.FromMicro(r.Updated), ExpiresAt: clock.FromMicro(r.Expires), Damaged: r.Damaged != nil,
	}
	if keysOnly {
		return e, true, nil
	}
	problem := r.Damaged
	switch {
	case problem != nil:
	case content.Hash(r.Body) != r.Hash:
		problem = errValue
	case r.Metadata != "" && !json.Valid([]byte(r.Metadata)):
		problem = errMetadata
	}
	if e.Damaged = problem != nil; e.Damaged {
		m.Logger.Error("an entry is damaged", "key", e.Key, "error", problem.Error())
		return e, true, nil
	}
	if e.Value = r.Body; r.Metadata != "" {
		e.Metadata = json.RawMessage(r.Metadata)
	}
	return e, true, nil
}

var (
	errValue    = errors.New("the value does not match its hash")
	errMetadata = errors.New("the metadata are not JSON")
)

func (s *entries) Retrieve(ctx context.Context, namespace, key string) (store.Memory, error) {
	if err := errors.Join(s.check(ctx), longterm.CheckNamespace(namespace)); err != nil {
		return store.Memory{}, err
	}
	if !longterm.Storable(key) {
		return store.Memory{}, longterm.Missing(key)
	}
	r, err := s.m.one(ctx, entryName(namespace, key))
	if err != nil {
		return store.Memory{}, err
	}
	if r == nil || r.Damaged == nil && s.m.expired(r) {
		return store.Memory{}, longterm.Missing(key)
	}
	e, exists, err := s.m.toMemory(ctx, r, false)
	switch {
	case err != nil:
		return store.Memory{}, err
	case !exists:
		return store.Memory{}, longterm.Missing(key)
	case e.Damaged:
		return store.Memory{}, longterm.Damaged(key)
	}
	return e, nil
}

func (s *entries) Delete(ctx context.Context, namespace, key string) (bool, error) {
	if err := errors.Join(s.check(ctx), longterm.CheckNamespace(namespace)); err != nil || !longterm.Storable(key) {
		return false, err
	}
	live, err := s.delete(ctx, []store.RecordName{entryName(namespace, key)})
	return live == 1, err
}

// delete removes rows and returns the number of live ones.
func (s *entries) delete(ctx context.Context, names []store.RecordName) (live int, err error) {
	b := &store.Batch{}
	for _, n := range names {
		b.Writes = append(b.Writes, &store.RowWrite{Row: store.Row{RecordName: n, Deleted: true}})
	}
	if err := s.m.write(ctx, b); err != nil {
		return 0, err
	}
	for _, w := range b.Writes {
		if w.Result.Live {
			live++
		}
	}
	return live, nil
}

func (s *entries) DeletePrefix(ctx context.Context, namespace, prefix string) (n int, err error) {
	if err := errors.Join(s.check(ctx), longterm.CheckPrefix(namespace, prefix), s.m.writable()); err != nil {
		return 0, err
	}
	if d, ok := s.m.driver.(store.PrefixDeleter); ok {
		return d.DeletePrefix(ctx, namespace, prefix, s.m.micro())
	}
	q := store.RowRange{Feed: store.EntryFeed, Space: namespace, Prefix: prefix, Limit: batchRows, NoBody: true}
	for {
		page, err := s.m.driver.Scan(ctx, q)
		if err != nil || len(page.Rows) == 0 {
			return n, err
		}
		names := make([]store.RecordName, len(page.Rows))
		for i, r := range page.Rows {
			names[i] = r.RecordName
		}
		live, err := s.delete(ctx, names)
		if n += live; err != nil || !page.More {
			return n, err
		}
		q.After = names[len(names)-1].Key
	}
}

func (s *entries) Sweep(ctx context.Context, before time.Time) (int, error) {
	if err := errors.Join(s.check(ctx), s.m.writable()); err != nil {
		return 0, err
	}
	return s.m.driver.Sweep(ctx, before.UnixMicro(), s.m.Now().Add(-KeptDeletions*time.Second).UnixMicro())
}

func (s *entries) Close() error {
	if s.closed.Swap(true) || s.index == nil {
		return nil
	}
	return s.index.close()
}

func (s *entries) List(ctx context.Context, l store.List) (p store.Page, err error) {
	if err := errors.Join(s.check(ctx), longterm.CheckPrefix(l.Namespace, l.Prefix), longterm.CheckPrefix(l.Namespace, l.After)); err != nil || l.Limit < 1 {
		return p, err
	}
	c := collector{limit: l.Limit, maxBytes: l.MaxBytes, keysOnly: l.KeysOnly, found: make([]store.Found, 0, min(l.Limit, 128))}
	err = s.walk(ctx, l, nil, nil, &c)
	p.Entries = make([]store.Memory, len(c.found))
	for i, f := range c.found {
		p.Entries[i] = f.Memory
	}
	p.More = c.more
	return p, err
}

// walk adds the live entries of a page. A non-nil wanted restricts the entries to those with the words of the required
// texts.
func (s *entries) walk(ctx context.Context, l store.List, required []string, wanted func(*store.Row) bool, c *collector) error {
	q := store.RowRange{
		Feed: store.EntryFeed, Space: l.Namespace, Prefix: l.Prefix, After: l.After, Limit: min(l.Limit+1, batchRows), MaxBytes: l.MaxBytes, NoBody: l.KeysOnly, Live: s.m.micro(), Require: required,
	}
	return s.m.each(ctx, q, func(r *store.Row) (bool, error) {
		if r.Damaged == nil && (s.m.expired(r) || wanted != nil && !wanted(r)) {
			return true, nil
		}
		return c.add(ctx, s.m, r, 0)
	})
}

// collector collects the results of a page.
type collector struct {
	found    []store.Found
	skip     int
	limit    int
	maxBytes int64
	keysOnly bool
	bytes    int64
	more     bool
}

// add adds a result, and reports whether there can be more.
func (c *collector) add(ctx context.Context, m *memory, r *store.Row, score float64) (bool, error) {
	if c.skip > 0 {
		c.skip--
		return true, nil
	}
	if c.more = len(c.found) == c.limit; c.more {
		return false, nil
	}
	e, exists, err := m.toMemory(ctx, r, c.keysOnly)
	if err != nil || !exists {
		return err == nil, err
	}
	c.bytes += e.JSONBytes()
	if c.more = c.maxBytes > 0 && c.bytes > c.maxBytes && len(c.found) > 0; c.more {
		return false, nil
	}
	c.found = append(c.found, store.Found{Memory: e, Score: score})
	return true, nil
}

package longterm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/metadata"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// readAhead is the number of changes read by one statement.
	readAhead = 4000
	// catchUp is the maximum number of changes left for the last step of opening the
	// index, which blocks writers.
	catchUp = 500
	// openEvery is the number of changes after which the index is opened in the
	// background, so that it is complete when the first search follows a bulk load.
	// Fewer changes are cheaper to apply at the next search.
	openEvery = 256
)

// openSoon opens the index in the background.
func (m *Memory) openSoon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.background.Go(func() {
		if _, err := m.textIndex(m.life); err != nil && m.life.Err() == nil {
			m.o.Logger.Warn("the text index cannot be opened; the next search tries again", "error", err.Error())
		}
	})
}

// textIndex returns the index, complete up to the last commit. The first call
// opens it and reads the rows that its files do not have.
func (m *Memory) textIndex(ctx context.Context) (*fulltext.Index, error) {
	if index, err := m.openIndex(); index != nil || err != nil {
		return index, err
	}
	m.opening.Lock()
	defer m.opening.Unlock()
	if index, err := m.openIndex(); index != nil || err != nil {
		return index, err
	}
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	identity, err := m.o.Engine.Identity(ctx)
	if err != nil {
		return nil, err
	}
	index, err := fulltext.Open(filepath.Join(m.o.IndexDir, identity), fulltext.Options{Language: m.o.Language, ReadOnly: m.o.ReadOnly})
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "open the text index: %w", err)
	}
	if lost := index.Lost(); lost != nil && !errors.Is(lost, fs.ErrNotExist) {
		m.o.Logger.Warn("the text index is rebuilt", "reason", lost.Error())
	}
	if why := index.Outdated(); why != nil {
		m.o.Logger.Warn("the text index is rewritten in the background", "reason", why.Error())
	}
	if err := m.resetIfAhead(ctx, index); err != nil {
		return nil, errors.Join(err, index.Close())
	}
	if err := m.replay(ctx, index); err != nil {
		return nil, errors.Join(fmt.Errorf("bring the text index up to date: %w", err), index.Close())
	}
	return index, nil
}

// openIndex returns the index if it is open.
func (m *Memory) openIndex() (*fulltext.Index, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed()
	}
	return m.index, nil
}

// resetIfAhead empties an index that is newer than the database, which was restored from
// an older copy, and an index that may lack changes.
func (m *Memory) resetIfAhead(ctx context.Context, index *fulltext.Index) error {
	m.mu.Lock()
	last, stale := m.numbers.seq, m.stale
	m.mu.Unlock()
	mark, err := store.Int(m.o.Engine.Query(ctx, "SELECT id FROM ltm_gone WHERE id < 0 AND seq <= ? ORDER BY seq DESC LIMIT 1", index.Watermark()))
	if err != nil {
		return fmt.Errorf("read the mark of the text index: %w", err)
	}
	switch {
	case index.Watermark() > last:
		m.o.Logger.Warn("the text index is rebuilt", "reason", "it is newer than the database")
	case index.Mark() != mark:
		m.o.Logger.Warn("the text index is rebuilt", "reason", "the database was replaced by a copy")
	case stale:
		m.o.Logger.Warn("the text index is rebuilt", "reason", "a commit failed, but its rows may have been written")
	default:
		return nil
	}
	return index.Reset()
}

// markStale handles the error of a write. If the database failed, the rows may have been
// written although the index does not have them. The next change would move the
// watermark of the index beyond them.
func (m *Memory) markStale(err error) error {
	if e := new(tea.Error); !errors.As(err, &e) || e.Type != tea.ConnectionError {
		return err
	}
	m.mu.Lock()
	m.stale = true
	index := m.index
	m.mu.Unlock()
	m.fields.Reset()
	if index != nil {
		m.dropIndex(index, err)
	}
	return err
}

// replay applies all changes after the watermark. The last few are applied while
// commits are blocked; after that, each commit updates the index.
func (m *Memory) replay(ctx context.Context, index *fulltext.Index) error {
	if err := m.revive(ctx); err != nil {
		return err
	}
	last, err := m.applyAll(ctx, index, index.Watermark(), catchUp)
	if err != nil {
		return err
	}
	var failed error
	err = m.o.Engine.Barrier(ctx, func() { failed = m.finish(ctx, index, last) })
	return errors.Join(err, failed)
}

// applyAll applies the changes after last until fewer than enough are left.
func (m *Memory) applyAll(ctx context.Context, index *fulltext.Index, last int64, enough int) (int64, error) {
	for {
		changes, err := m.changesAfter(ctx, last)
		if err != nil || len(changes) < enough {
			return last, err
		}
		if last, err = m.apply(ctx, index, changes); err != nil {
			return last, err
		}
	}
}

// finish applies the last changes and publishes the index.
func (m *Memory) finish(ctx context.Context, index *fulltext.Index, last int64) error {
	last, err := m.applyAll(ctx, index, last, 1)
	if err != nil {
		return err
	}
	waiting, err := m.waiting(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index, m.applied, m.expiry, m.stale = index, last, waiting, false
	m.fields.Reset()
	return nil
}

// change is a row that the index does not have yet, or the removal of a row.
type change struct {
	seq  int64
	gone bool
	entry
}

// changesAfter reads the next changes in order. A single statement reads rows and
// removals, because two could miss a change that is committed in between.
func (m *Memory) changesAfter(ctx context.Context, after int64) ([]change, error) {
	rows, err := m.o.Engine.Query(ctx, `SELECT seq, id, key, value, metadata, content_hash FROM ltm WHERE seq > ?
		UNION ALL SELECT seq, id, NULL, NULL, NULL, NULL FROM ltm_gone WHERE seq > ? ORDER BY 1 LIMIT ?`, after, after, readAhead)
	var found []change
	var seq, id int64
	var key, value, metadata, hash text
	err = store.Scan(rows, err, func() {
		c := change{seq: seq, gone: !key.Valid}
		c.ID, c.ContentHash = id, hash.String
		c.Namespace, c.Key = splitRowKey(key.String)
		c.hold(value, metadata, number{})
		found = append(found, c)
	}, &seq, &id, &key, &value, &metadata, &hash)
	return found, err
}

// apply applies changes to an index that other goroutines do not see yet.
func (m *Memory) apply(ctx context.Context, index *fulltext.Index, changes []change) (last int64, err error) {
	for _, c := range changes {
		last = c.seq
		if c.ID < 0 {
			if err := index.SetMark(c.ID, c.seq); err != nil {
				return 0, err
			}
			continue
		}
		if c.gone {
			if err := index.Delete(c.ID, c.seq); err != nil {
				return 0, err
			}
			continue
		}
		v, err := m.indexed(ctx, &c.entry)
		if err != nil {
			return 0, err
		}
		if err := index.Put(fulltext.Document{ID: c.ID, Seq: c.seq, Tag: tag(c.Namespace), Fields: fields(c.Key, v, string(c.Metadata))}); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// indexed returns the value of an entry. It is nil for a damaged value, whose entry is
// indexed by its key only.
func (m *Memory) indexed(ctx context.Context, e *entry) (any, error) {
	err := m.fill(ctx, e)
	switch {
	case errors.Is(err, errRemoved): // a later change removes it
		return nil, nil
	case errors.Is(err, content.ErrDamaged):
		m.o.Logger.Error("a value is damaged and cannot be found by its text", "key", e.Key, "error", err.Error())
		return nil, nil
	case err != nil:
		return nil, err
	}
	v, err := value.Decode(e.Value)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", e.Key, err)
	}
	return v, nil
}

// indexRows adds written rows to the index. It runs after each commit, in the order of
// the commits.
func (m *Memory) indexRows(written []*row) {
	for _, r := range written {
		m.fields.Apply(metadata.Change{ID: r.id, Metadata: r.metadata})
	}
	m.mu.Lock()
	if m.index == nil { // opening it reads the rows
		m.mu.Unlock()
		if n := len(written); n > 0 && written[0].seq/openEvery != (written[n-1].seq+1)/openEvery {
			m.openSoon()
		}
		return
	}
	size := 0
	for _, r := range written {
		m.expiry.add(r.expiresAt, r.id)
		size += len(r.content.text) + len(r.metadata)
	}
	m.mu.Unlock()
	m.backlog.add(size, func() {
		for _, r := range written {
			m.applyNow(r.seq, func(index *fulltext.Index) error {
				namespace, key := splitRowKey(r.key)
				return index.Put(fulltext.Document{ID: r.id, Seq: r.seq, Tag: tag(namespace), Fields: fields(key, r.content.value, r.metadata)})
			})
		}
	})
}

// unindex removes an entry from the index. It runs after the commit.
func (m *Memory) unindex(id, seq int64) {
	m.fields.Apply(metadata.Change{ID: id, Deleted: true})
	m.backlog.add(0, func() {
		m.applyNow(seq, func(index *fulltext.Index) error { return index.Delete(id, seq) })
	})
}

// applyNow applies a change to the index, unless a replay applies it.
func (m *Memory) applyNow(seq int64, apply func(*fulltext.Index) error) {
	m.mu.Lock()
	index, applied := m.index, m.applied
	m.mu.Unlock()
	if index == nil || seq <= applied {
		return
	}
	if err := unbroken(func() error { return apply(index) }); err != nil {
		m.dropIndex(index, err)
	}
}

// unbroken turns a panic into an error.
func unbroken(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

// dropIndex closes an index that failed to apply a change. The change is in the
// database, where the next search reads it when it opens the index again.
func (m *Memory) dropIndex(index *fulltext.Index, reason error) {
	m.o.Logger.Error("the text index failed and is opened again", "error", reason.Error())
	m.mu.Lock()
	if m.index == index {
		m.index = nil
	}
	m.mu.Unlock()
	if err := index.Close(); err != nil {
		m.o.Logger.Error("the text index cannot be closed", "error", err.Error())
	}
}

// fields returns the searchable texts of an entry: its key and the leaves of its value
// and metadata.
func fields(key string, v any, metadata string) []fulltext.Field {
	all := []fulltext.Field{{Name: "key", Text: key}}
	// The metadata come first because only the first words of a very long value are
	// indexed, and filters need the words of the metadata.
	if metadata != "" {
		if object, err := value.Decode([]byte(metadata)); err == nil { // else it is damaged
			all = leaves(all, "metadata", object)
		}
	}
	return leaves(all, "value", v)
}

func leaves(all []fulltext.Field, name string, v any) []fulltext.Field {
	switch v := v.(type) {
	case string:
		return append(all, fulltext.Field{Name: name, Text: v})
	case []any:
		for _, item := range v {
			all = leaves(all, name, item)
		}
	case map[string]any:
		names := make([]string, 0, len(v))
		for member := range v {
			names = append(names, member)
		}
		sort.Strings(names)
		for _, member := range names {
			all = leaves(all, name, v[member])
		}
	case int64:
		return append(all, fulltext.Field{Name: name, Text: strconv.FormatInt(v, 10)})
	case float64, fmt.Stringer:
		if text, err := value.Encode(v); err == nil {
			return append(all, fulltext.Field{Name: name, Text: strings.Trim(string(text), `"`)})
		}
	}
	return all
}

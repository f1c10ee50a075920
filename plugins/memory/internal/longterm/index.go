package longterm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime/debug"

	tea "github.com/the-edge-agent/tea/sdk"

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
		if _, err := m.current(m.life); err != nil && m.life.Err() == nil {
			m.o.Logger.Warn("the text index cannot be opened; the next search tries again", "error", err.Error())
		}
	})
}

// Current returns the index with all changes that were acknowledged before, without
// expired entries.
func (m *Memory) Current(ctx context.Context) (*fulltext.Index, error) {
	index, err := m.current(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.expire(ctx); err != nil && !m.readable(err) {
		return nil, err
	}
	return index, m.backlog.wait(ctx)
}

// readable reports whether a search can go on although the removal of expired entries
// failed. They only affect scores; results never contain them.
func (m *Memory) readable(err error) bool {
	e := new(tea.Error)
	if !errors.As(err, &e) || (e.Type != tea.ConnectionError && e.Type != tea.CircuitOpen) {
		return false
	}
	m.o.Logger.Warn("expired entries cannot be removed from the text index", "error", err.Error())
	return true
}

// Discard empties a damaged index. The next search rebuilds it.
func (m *Memory) Discard(index *fulltext.Index) error {
	if err := index.Reset(); err != nil && !errors.Is(err, fulltext.ErrClosed) {
		return err
	}
	m.dropIndex(index, fulltext.ErrCorrupt)
	return nil
}

// current returns the index, complete up to the last commit. The first call opens it and
// reads the rows that its files do not have.
func (m *Memory) current(ctx context.Context) (*fulltext.Index, error) {
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

// Failed handles the error of a write. If the database failed, the rows may have been
// written although the index does not have them. The next change would move the
// watermark of the index beyond them.
func (m *Memory) Failed(_ []*store.RowWrite, err error) {
	if e := new(tea.Error); !errors.As(err, &e) || e.Type != tea.ConnectionError {
		return
	}
	m.mu.Lock()
	m.stale = true
	index := m.index
	m.mu.Unlock()
	m.fields.Reset()
	if index != nil {
		m.dropIndex(index, err)
	}
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

// changesAfter reads the next changes in order, with those that removed rows or marked
// the index. A single statement reads all, because two could miss a change that is
// committed in between.
func (m *Memory) changesAfter(ctx context.Context, after int64) ([]store.Row, error) {
	return m.read(ctx, ofFeed, "SELECT "+ofFeed.columns(false)+" FROM ltm WHERE seq > ? UNION ALL SELECT NULL, NULL, '', NULL, '', id, 0, 0, seq, '' FROM ltm_gone WHERE seq > ? ORDER BY 9 LIMIT ?", after, after, readAhead)
}

// apply applies changes to an index that other goroutines do not see yet.
func (m *Memory) apply(ctx context.Context, index *fulltext.Index, changes []store.Row) (last int64, err error) {
	for i := range changes {
		r := &changes[i]
		last = r.Seq
		switch {
		case r.ID < 0:
			err = index.SetMark(r.ID, r.Seq)
		case r.Deleted:
			err = index.Delete(r.ID, r.Seq)
		default:
			err = m.applyRow(ctx, index, r)
		}
		if err != nil {
			return 0, err
		}
	}
	return last, nil
}

// applyRow adds a row. The row of a damaged value can be found by its key only.
func (m *Memory) applyRow(ctx context.Context, index *fulltext.Index, r *store.Row) error {
	if _, err := m.fill(ctx, r); err != nil { // a later change removes a row that was removed meanwhile
		return err
	}
	if r.Damaged == nil && r.Body != nil && content.Hash(r.Body) != r.Hash {
		m.damaged(r, content.ErrDamaged)
	}
	return index.Put(fulltext.Document{ID: r.ID, Seq: r.Seq, Tag: Tag(r.Space), Fields: Fields(r.Key, string(r.Body), r.Metadata)})
}

// indexRows adds written rows to the index. It runs after each commit, in the order of
// the commits.
func (m *Memory) indexRows(all []written) {
	for _, w := range all {
		m.fields.Apply(metadata.Change{ID: w.id, Metadata: w.Metadata})
	}
	m.mu.Lock()
	if m.index == nil { // opening it reads the rows
		m.mu.Unlock()
		if n := len(all); n > 0 && all[0].seq/openEvery != (all[n-1].seq+1)/openEvery {
			m.openSoon()
		}
		return
	}
	size := 0
	for _, w := range all {
		m.expiry.add(w.Expires, w.id)
		size += len(w.Body) + len(w.Metadata)
	}
	m.mu.Unlock()
	m.backlog.add(size, func() {
		for _, w := range all {
			m.applyNow(w.seq, func(index *fulltext.Index) error {
				return index.Put(fulltext.Document{ID: w.id, Seq: w.seq, Tag: Tag(w.Space), Fields: Fields(w.Key, string(w.Body), w.Metadata)})
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

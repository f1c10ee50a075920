package embedded

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
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
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
func (m *entries) openSoon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.background.Go(func() {
		if _, err := m.textIndex(m.life); err != nil && m.life.Err() == nil {
			m.Logger.Warn("the text index cannot be opened; the next search tries again", "error", err.Error())
		}
	})
}

// textIndex returns the index, complete up to the last commit. The first call
// opens it and reads the rows that its files do not have.
func (m *entries) textIndex(ctx context.Context) (*fulltext.Index, error) {
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
	identity, err := m.engine.Identity(ctx)
	if err != nil {
		return nil, err
	}
	index, err := fulltext.Open(m.indexDir(identity), fulltext.Options{Language: m.Language, ReadOnly: m.readOnly})
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "open the text index: %w", err)
	}
	if lost := index.Lost(); lost != nil && !errors.Is(lost, fs.ErrNotExist) {
		m.Logger.Warn("the text index is rebuilt", "reason", lost.Error())
	}
	if why := index.Outdated(); why != nil {
		m.Logger.Warn("the text index is rewritten in the background", "reason", why.Error())
	}
	if err := m.resetIfAhead(ctx, index); err != nil {
		return nil, errors.Join(err, index.Close())
	}
	if err := m.replay(ctx, index); err != nil {
		return nil, errors.Join(fmt.Errorf("bring the text index up to date: %w", err), index.Close())
	}
	return index, nil
}

func (m *entries) indexDir(identity string) string { return filepath.Join(m.Dir, "index", identity) }

// openIndex returns the index if it is open.
func (m *entries) openIndex() (*fulltext.Index, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed()
	}
	return m.index, nil
}

// resetIfAhead empties an index that is newer than the database, which was restored from
// an older copy, and an index that may lack changes.
func (m *entries) resetIfAhead(ctx context.Context, index *fulltext.Index) error {
	last, _ := m.numbers.last()
	m.mu.Lock()
	stale := m.stale
	m.mu.Unlock()
	mark, err := store.Int(m.engine.Query(ctx, "SELECT id FROM ltm_gone WHERE id < 0 AND seq <= ? ORDER BY seq DESC LIMIT 1", index.Watermark()))
	if err != nil {
		return fmt.Errorf("read the mark of the text index: %w", err)
	}
	switch {
	case index.Watermark() > last:
		m.Logger.Warn("the text index is rebuilt", "reason", "it is newer than the database")
	case index.Mark() != mark:
		m.Logger.Warn("the text index is rebuilt", "reason", "the database was replaced by a copy")
	case stale:
		m.Logger.Warn("the text index is rebuilt", "reason", "a commit failed, but its rows may have been written")
	default:
		return nil
	}
	return index.Reset()
}

// markStale handles the error of a write. If the database failed, the rows may have been
// written although the index does not have them. The next change would move the
// watermark of the index beyond them.
func (m *entries) markStale(err error) {
	if !databaseFailed(err) {
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

func databaseFailed(err error) bool {
	e := new(tea.Error)
	return errors.As(err, &e) && e.Type == tea.ConnectionError
}

// replay applies all changes after the watermark. The last few are applied while
// commits are blocked; after that, each commit updates the index.
func (m *entries) replay(ctx context.Context, index *fulltext.Index) error {
	if err := m.revive(ctx); err != nil {
		return err
	}
	last, err := m.applyAll(ctx, index, index.Watermark(), catchUp)
	if err != nil {
		return err
	}
	var failed error
	err = m.engine.Barrier(ctx, func() { failed = m.finish(ctx, index, last) })
	return errors.Join(err, failed)
}

// applyAll applies the changes after last until fewer than enough are left.
func (m *entries) applyAll(ctx context.Context, index *fulltext.Index, last int64, enough int) (int64, error) {
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
func (m *entries) finish(ctx context.Context, index *fulltext.Index, last int64) error {
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

// changesAfter reads the next changes in order. A single statement reads rows and
// removals, because two could miss a change that is committed in between.
func (m *entries) changesAfter(ctx context.Context, after int64) (found []store.Row, err error) {
	rows, err := m.engine.Query(ctx, "SELECT "+columns+` FROM ltm WHERE seq > ?
		UNION ALL SELECT id, '', NULL, NULL, '', 0, 0, NULL, seq FROM ltm_gone WHERE seq > ? ORDER BY seq LIMIT ?`, after, after, readAhead)
	err = m.scanRows(rows, err, store.RowQuery{Numbered: true}, func(r *store.Row) { found = append(found, *r) })
	return found, err
}

// apply applies changes to an index that other goroutines do not see yet.
func (m *entries) apply(ctx context.Context, index *fulltext.Index, changes []store.Row) (last int64, err error) {
	for i := range changes {
		r := &changes[i]
		switch last = r.Seq; {
		case r.ID < 0:
			err = index.SetMark(r.ID, r.Seq)
		case r.Deleted:
			err = index.Delete(r.ID, r.Seq)
		default:
			err = m.put(ctx, index, r)
		}
		if err != nil {
			return 0, err
		}
	}
	return last, nil
}

// put adds an entry to an index. A damaged value is not indexed; its entry is found by its key.
func (m *entries) put(ctx context.Context, index *fulltext.Index, r *store.Row) error {
	id, seq := r.ID, r.Seq
	body := r.Body
	if r.Load != nil {
		now, err := r.Load(ctx)
		if err != nil {
			return err
		}
		body, r.Damaged = now.Body, now.Damaged // a later change removes a deleted entry
	}
	if r.Damaged == nil && body != nil && content.Hash(body) != r.Hash {
		r.Damaged = content.ErrDamaged
	}
	if r.Damaged != nil {
		m.Logger.Error("a value is damaged and cannot be found by its text", "key", r.Key, "error", r.Damaged.Error())
		body = nil
	}
	return index.Put(fulltext.Document{ID: id, Seq: seq, Tag: tag(r.Space), Fields: longterm.Fields(r.Key, body, r.Metadata)})
}

// tag returns the tag of a namespace's entries in the text index.
func tag(namespace string) string { return "/" + namespace }

// indexRows adds written rows to the index. It runs after each commit, in the order of
// the commits.
func (m *entries) indexRows(written []*row) {
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
		size += len(r.w.Body) + len(r.metadata)
	}
	m.mu.Unlock()
	m.backlog.add(size, func() {
		for _, r := range written {
			m.applyNow(r.seq, func(index *fulltext.Index) error {
				return index.Put(fulltext.Document{ID: r.id, Seq: r.seq, Tag: tag(r.w.Space), Fields: longterm.Fields(r.w.Key, r.w.Body, r.metadata)})
			})
		}
	})
}

// unindex removes an entry from the index. It runs after the commit.
func (m *entries) unindex(id, seq int64) {
	m.fields.Apply(metadata.Change{ID: id, Deleted: true})
	m.backlog.add(0, func() {
		m.applyNow(seq, func(index *fulltext.Index) error { return index.Delete(id, seq) })
	})
}

// applyNow applies a change to the index, unless a replay applies it.
func (m *entries) applyNow(seq int64, apply func(*fulltext.Index) error) {
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
func (m *entries) dropIndex(index *fulltext.Index, reason error) {
	m.Logger.Error("the text index failed and is opened again", "error", reason.Error())
	m.mu.Lock()
	if m.index == index {
		m.index = nil
	}
	m.mu.Unlock()
	if err := index.Close(); err != nil {
		m.Logger.Error("the text index cannot be closed", "error", err.Error())
	}
}

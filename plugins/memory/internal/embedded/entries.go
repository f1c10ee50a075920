package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/metadata"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// largePrefix is the prefix of the blobs of values that are too large for a row.
const largePrefix = "ltm/"

// entries are the rows of the long-term memory and their text index.
type entries struct {
	*options

	large   *content.Store
	backlog backlog
	fields  metadata.Cache
	numbers numbers

	life       context.Context //nolint:containedctx // Close cancels the background work
	end        context.CancelFunc
	background sync.WaitGroup

	opening sync.Mutex // held while the index is opened
	mu      sync.Mutex // guards the fields below
	keys    *keys      // nil if the database looks up keys fast
	index   *fulltext.Index
	applied int64 // the last change applied when the index was opened
	expiry  expiry
	// stale reports whether the index's files may lack a change; see markStale.
	stale  bool
	marked bool // this process has written its mark; see batch.next
	closed bool
}

func newEntries(o *options) *entries {
	m := &entries{options: o, large: content.New(o.Blobs, largePrefix)}
	m.life, m.end = context.WithCancel(context.Background())
	return m
}

// Close ends background work and writes the text index.
func (m *entries) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.end()
	m.background.Wait()
	m.opening.Lock()
	defer m.opening.Unlock()
	if err := m.backlog.wait(context.Background()); err != nil {
		return err
	}
	m.mu.Lock()
	index := m.index
	m.index = nil
	m.mu.Unlock()
	if index == nil {
		return nil
	}
	if err := index.Close(); err != nil {
		// Nothing is lost: the next start reads the rows.
		m.Logger.Warn("the text index cannot be written; the next start rebuilds it", "error", err.Error())
	}
	return nil
}

// errClosed is the error of calls after Close.
func errClosed() error { return tea.Errorf(tea.ConnectionError, "the memory is closed") }

// ready reads the state that writes need, once.
func (m *entries) ready(ctx context.Context) error {
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return errClosed()
	}
	return m.numbers.ready(func() (int64, int64, error) {
		if m.engine.Dialect() == store.DuckDB {
			taken, err := m.readKeys(ctx)
			if err != nil {
				return 0, 0, fmt.Errorf("read the keys: %w", err)
			}
			m.mu.Lock()
			m.keys = taken
			m.mu.Unlock()
		}
		return lastNumbers(ctx, m.engine, "ltm")
	})
}

// Namespace and key share a column, since DuckDB uses only indexes on one column. A key
// of the default namespace is stored unchanged. Other keys are preceded by the last code
// point of Unicode, the namespace, and a character that no namespace contains. This
// keeps a namespace's entries together, in the order of their keys, with the default
// namespace first.
const (
	beyond    = "\U0010FFFF"
	separator = "\x01"
)

// rowKey returns the value of the key column.
func rowKey(namespace, key string) string {
	if namespace == "" && !strings.HasPrefix(key, beyond) {
		return key
	}
	return beyond + namespace + separator + key
}

// splitRowKey returns the namespace and the key of an entry.
func splitRowKey(row string) (namespace, key string) {
	rest, ok := strings.CutPrefix(row, beyond)
	if !ok {
		return "", row
	}
	namespace, key, _ = strings.Cut(rest, separator)
	return namespace, key
}

func rowKeys(names []store.RecordName) []string {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = rowKey(name.Space, name.Key)
	}
	return keys
}

const columns = "id, key, value, metadata, content_hash, created_at, updated_at, expires_at, seq"

// read reads rows, with what the query asks for. The condition follows FROM.
func (m *entries) read(ctx context.Context, q store.RowQuery, add func(*store.Row), condition string, args ...any) error {
	selected := columns
	if q.NoBody {
		selected = strings.Replace(columns, "value", "NULL", 1)
	}
	if !q.Numbered {
		selected = strings.TrimSuffix(selected, ", seq")
	}
	rows, err := m.engine.Query(ctx, "SELECT "+selected+" FROM ltm "+condition, args...)
	return m.scanRows(rows, err, q, add)
}

func (m *entries) scanRows(rows store.Rows, err error, q store.RowQuery, add func(*store.Row)) error {
	var r store.Row
	var key string
	var value, metadata text
	var expires number
	dest := []any{&r.ID, &key, &value, &metadata, &r.Hash, &r.Created, &r.Updated, &expires, &r.Seq}
	if !q.Numbered {
		dest = dest[:len(dest)-1]
	}
	return store.Scan(rows, err, func() {
		r.Feed, r.Deleted = store.EntryFeed, r.Hash == ""
		r.Space, r.Key = splitRowKey(key)
		m.hold(&r, value, metadata, expires, q.NoBody)
		add(&r)
	}, dest...)
}

// hold sets the fields of nullable columns.
func (m *entries) hold(r *store.Row, value, metadata text, expires number, noBody bool) {
	r.Body, r.Metadata, r.Expires, r.Load = nil, metadata.String, expires.Int64, nil
	switch {
	case value.Valid:
		r.Body = []byte(value.String)
	case !noBody && !r.Deleted:
		large := *r
		r.Load = func(ctx context.Context) (store.Row, error) { return m.load(ctx, large) }
	}
}

// load loads the value of a row from its blob. If the blob does not exist, the entry may have changed since its row was
// read, so it is read again.
func (m *entries) load(ctx context.Context, r store.Row) (store.Row, error) {
	for {
		body, err := m.loadLarge(ctx, r.Hash)
		switch {
		case err == nil:
			r.Body = body
			return r, nil
		case errors.Is(err, content.ErrDamaged):
			r.Damaged = err
			return r, nil
		case !errors.Is(err, store.ErrNotFound):
			return r, fmt.Errorf("read the value of key %q: %w", r.Key, err)
		}
		again := store.Row{RecordName: r.RecordName, Deleted: true}
		if err := m.read(ctx, store.RowQuery{}, func(found *store.Row) { again = *found }, "WHERE key = ?", rowKey(r.Space, r.Key)); err != nil {
			return r, err
		}
		switch {
		case again.Load == nil:
			return again, nil
		case again.Hash == r.Hash:
			r.Damaged = fmt.Errorf("blob %s is missing: %w", r.Hash, content.ErrDamaged)
			return r, nil
		}
		r = again
	}
}

// loadLarge reads a large value from its blob. It must not take m.large: it can run in a
// commit that a holder of m.large waits for. load handles a value that is removed
// meanwhile.
func (m *entries) loadLarge(ctx context.Context, hash string) ([]byte, error) {
	if len(hash) != hashLength {
		return nil, content.ErrDamaged
	}
	return m.large.Load(ctx, hash)
}

// hashLength is the length of a SHA-256 in hex.
const hashLength = 64

func (m *entries) get(ctx context.Context, q store.RowQuery) (found []store.Row, err error) {
	if len(q.Names) == 1 && !q.Numbered && !q.NoBody {
		return m.getOne(ctx, q.Names[0])
	}
	found = make([]store.Row, 0, len(q.Names)+len(q.IDs))
	add := func(r *store.Row) { found = append(found, *r) }
	err = eachPart(rowKeys(q.Names), func(list string, args []any) error {
		return m.read(ctx, q, add, "WHERE key IN "+list, args...)
	})
	if err != nil {
		return nil, err
	}
	err = eachPart(q.IDs, func(list string, args []any) error {
		return m.read(ctx, q, add, "WHERE id IN "+list, args...)
	})
	return found, err
}

// getOne reads only the columns that a look-up needs, for speed.
func (m *entries) getOne(ctx context.Context, name store.RecordName) (found []store.Row, err error) {
	rows, err := m.engine.Query(ctx, "SELECT value, metadata, content_hash, expires_at FROM ltm WHERE key = ?", rowKey(name.Space, name.Key))
	var value, metadata text
	var hash string
	var expires number
	err = store.Scan(rows, err, func() {
		found = []store.Row{{RecordName: name, Hash: hash}}
		m.hold(&found[0], value, metadata, expires, false)
	}, &value, &metadata, &hash, &expires)
	return found, err
}

func (m *entries) scan(ctx context.Context, q store.RowRange, p *page) error {
	// The keys with a prefix are adjacent and begin with the prefix itself.
	from, after := rowKey(q.Space, q.Prefix), ""
	if q.After != "" {
		after = rowKey(q.Space, q.After)
	}
	n := 0
	err := m.read(ctx, store.RowQuery{NoBody: q.NoBody}, func(r *store.Row) {
		if n++; r.Space == q.Space && strings.HasPrefix(r.Key, q.Prefix) {
			p.add(r)
		} else {
			n = -q.Limit // the keys with the prefix have ended
		}
	}, "WHERE key > ? AND key >= ? AND (expires_at IS NULL OR expires_at > ?) ORDER BY key LIMIT ?", after, from, q.Live, q.Limit)
	p.More = p.More || n == q.Limit
	return err
}

// changes reads rows and tombstones in one statement, so that no change is missed between two.
func (m *entries) changes(ctx context.Context, q store.RowChanges, p *page) error {
	rows, err := m.engine.Query(ctx, "SELECT "+columns+" FROM ltm WHERE seq > ? UNION ALL "+
		"SELECT 0, ? || space || ? || key, NULL, NULL, '', deleted_at, deleted_at, NULL, seq FROM tea_deleted WHERE feed = ? AND seq > ? ORDER BY seq LIMIT ?",
		q.After, beyond, separator, string(store.EntryFeed), q.After, q.Limit+1)
	return m.scanRows(rows, err, store.RowQuery{Numbered: true}, p.add)
}

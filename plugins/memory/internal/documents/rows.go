package documents

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Rows are the documents in an embedded database, which has one Rows. They are safe for
// concurrent use.
type Rows struct {
	engine store.QueryEngine

	mu  sync.Mutex
	seq int64 // the last assigned number; 0 = not read yet
}

// NewRows returns the documents of a database. The caller closes the engine.
func NewRows(engine store.QueryEngine) *Rows { return &Rows{engine: engine} }

// Reader runs queries: a [store.Tx] sees its own changes, a [store.QueryEngine] the
// committed ones.
type Reader interface {
	Query(ctx context.Context, query string, args ...any) (store.Rows, error)
}

const (
	columns     = "kind, id, body, version, seq"
	withoutBody = "kind, id, '', version, seq"
	// lookUp is the maximum number of documents that one statement finds or removes.
	lookUp = 500
)

func columnsOf(noBody bool) string {
	if noBody {
		return withoutBody
	}
	return columns
}

// Get returns the rows with these names.
func (d *Rows) Get(ctx context.Context, from Reader, q store.RowQuery) (all []store.Row, err error) {
	err = eachKind(q.Names, func(kind string, ids []any) error {
		with, some := withIDs(d.engine.Dialect(), store.Condition{Field: idField, Op: store.In, Value: ids}), in(idField, ids)
		rows, err := scan(from.Query(ctx, with.sql+"SELECT "+columnsOf(q.NoBody)+" FROM documents WHERE kind = ? AND "+some.sql, slices.Concat(with.args, []any{kind}, some.args)...))
		all = append(all, rows...)
		return err
	})
	return all, err
}

// eachKind calls fn with the ids of each kind, some at a time.
func eachKind(names []store.RecordName, fn func(kind string, ids []any) error) error {
	byKind := map[string][]any{}
	for _, name := range names {
		byKind[name.Space] = append(byKind[name.Space], name.Key)
	}
	for kind, ids := range byKind {
		for part := range slices.Chunk(ids, lookUp) {
			if err := fn(kind, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// scan reads documents.
func scan(rows store.Rows, err error) (all []store.Row, _ error) {
	r := store.Row{RecordName: store.RecordName{Feed: store.DocumentFeed}}
	var body string
	err = store.Scan(rows, err, func() {
		r.Body = []byte(body)
		all = append(all, r)
	}, &r.Space, &r.Key, &body, &r.Version, &r.Seq)
	return all, err
}

// Scan returns rows of a kind in the order of their ids.
func (d *Rows) Scan(ctx context.Context, q store.RowRange) (page store.RowPage, err error) {
	query := store.DocumentQuery{Kind: q.Space, OrderBy: idField, Limit: q.Limit, Where: []store.Condition{{Field: idField, Op: store.Gt, Value: q.After}, {Field: idField, Op: store.Prefix, Value: q.Prefix}}}
	page.Rows, err = d.Find(ctx, d.engine, query)
	page.More = len(page.Rows) == q.Limit
	return page, err
}

// Find returns the rows of the documents that match a query.
func (d *Rows) Find(ctx context.Context, from Reader, q store.DocumentQuery) ([]store.Row, error) {
	wanted, err := where(d.engine.Dialect(), q)
	if err != nil {
		return nil, err
	}
	order, err := ordering(d.engine.Dialect(), q)
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	with := withIDs(d.engine.Dialect(), q.Where...)
	args := append(slices.Concat(with.args, wanted.args), limit, q.Offset)
	return scan(from.Query(ctx, with.sql+"SELECT "+columns+" FROM documents WHERE "+wanted.sql+order+" LIMIT ? OFFSET ?", args...))
}

// Count returns the number of documents that match a query, ignoring its limit.
func (d *Rows) Count(ctx context.Context, from Reader, q store.DocumentQuery) (int, error) {
	wanted, err := where(d.engine.Dialect(), q)
	if err != nil {
		return 0, err
	}
	n, err := store.Int(from.Query(ctx, "SELECT count(*) FROM documents WHERE "+wanted.sql, wanted.args...))
	return int(n), err
}

// Changes returns the rows and tombstones after a number.
func (d *Rows) Changes(ctx context.Context, q store.RowChanges) (store.RowPage, error) {
	r := store.Row{RecordName: store.RecordName{Feed: store.DocumentFeed}}
	var body string
	// One statement, so that no change is missed between two.
	rows, err := d.engine.Query(ctx, "SELECT seq, kind, id, body, version, 0, 0 FROM documents WHERE seq > ? UNION ALL "+
		"SELECT seq, space, key, '', 0, 1, deleted_at FROM tea_deleted WHERE feed = ? AND seq > ? ORDER BY 1 LIMIT ?", q.After, string(store.DocumentFeed), q.After, q.Limit)
	var all []store.Row
	var deleted int64
	err = store.Scan(rows, err, func() {
		r.Body, r.Deleted = []byte(body), deleted == 1
		all = append(all, r)
	}, &r.Seq, &r.Space, &r.Key, &body, &r.Version, &deleted, &r.Updated)
	return deletion.RowPage(q, all), err
}

// Last returns the number of the last change.
func (d *Rows) Last(ctx context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seq > 0 {
		return d.seq, nil
	}
	last, err := store.Int(d.engine.Query(ctx, "SELECT coalesce(max(seq), 0) FROM documents"))
	if err != nil {
		return 0, fmt.Errorf("read the last number: %w", err)
	}
	deleted, err := deletion.Last(ctx, d.engine, store.DocumentFeed)
	if err != nil {
		return 0, fmt.Errorf("read the last number: %w", err)
	}
	d.seq = max(last, deleted)
	return d.seq, nil
}

func (d *Rows) next() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	return d.seq
}

// Begin sets the results of writes before they are done, and returns the function that
// does those that are not refused.
func (d *Rows) Begin(ctx context.Context, tx store.Tx, writes []*store.RowWrite, now int64) (func(context.Context) error, error) {
	if _, err := d.Last(ctx); err != nil {
		return nil, err
	}
	names := make([]store.RecordName, len(writes))
	for i, w := range writes {
		names[i] = w.RecordName
	}
	rows, err := d.Get(ctx, tx, store.RowQuery{Names: names, NoBody: true})
	if err != nil {
		return nil, fmt.Errorf("read the documents' versions: %w", err)
	}
	have := make(map[store.RecordName]*store.Row, len(rows))
	for i := range rows {
		have[rows[i].RecordName] = &rows[i]
	}
	for _, w := range writes {
		w.Result = store.RowResult{}
		r := have[w.RecordName]
		if r != nil {
			w.Result = store.RowResult{Seq: r.Seq, Version: r.Version, Live: true}
		}
		w.Result.Unmet = !w.If.Met(r != nil, w.Result.Seq, w.Result.Version)
	}
	return func(ctx context.Context) error { return d.write(ctx, tx, writes, now) }, nil
}

func (d *Rows) write(ctx context.Context, tx store.Tx, writes []*store.RowWrite, now int64) error {
	gone := map[string][]any{}
	var added, deleted [][]any
	for _, w := range writes {
		exists := w.Result.Live
		if w.Result.Unmet || w.Deleted && !exists {
			continue
		}
		seq, version := d.next(), w.Version
		if version == 0 {
			version = w.Result.Version + 1
		}
		switch w.Result.Seq = seq; {
		case w.Deleted:
			w.Result.Seq = 0
			gone[w.Space] = append(gone[w.Space], w.Key)
			deleted = append(deleted, deletion.Row(store.DocumentFeed, seq, w.Space, w.Key, now))
		case !exists:
			added = append(added, []any{w.Space, w.Key, string(w.Body), version, seq})
		default:
			if _, err := tx.Exec(ctx, "UPDATE documents SET body = ?, version = ?, seq = ? WHERE kind = ? AND id = ?", string(w.Body), version, seq, w.Space, w.Key); err != nil {
				return fmt.Errorf("write %s %s: %w", w.Space, w.Key, err)
			}
		}
	}
	for kind, ids := range gone {
		for part := range slices.Chunk(ids, lookUp) {
			some := in(idField, part)
			if _, err := tx.Exec(ctx, "DELETE FROM documents WHERE kind = ? AND "+some.sql, append([]any{kind}, some.args...)...); err != nil {
				return fmt.Errorf("remove documents: %w", err)
			}
		}
	}
	if err := tx.Append(ctx, deletion.Table, deleted...); err != nil {
		return fmt.Errorf("add deletions: %w", err)
	}
	if err := tx.Append(ctx, "documents", added...); err != nil {
		return fmt.Errorf("add documents: %w", err)
	}
	return nil
}

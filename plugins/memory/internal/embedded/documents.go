package embedded

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	internal "github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// documents reads and writes the rows of documents.
type documents struct {
	*options
	numbers numbers
}

const documentColumns = "seq, kind, id, body, version"

func scanDocuments(rows store.Rows, err error, add func(*store.Row)) error {
	var r store.Row
	var body string
	return store.Scan(rows, err, func() {
		r.Feed, r.Body, r.Deleted = store.DocumentFeed, []byte(body), r.Version == 0
		add(&r)
	}, &r.Seq, &r.Space, &r.Key, &body, &r.Version)
}

// find returns the documents that a SELECT returns. condition follows FROM documents.
func (d *documents) find(ctx context.Context, with internal.Clause, condition string, args ...any) (found []store.Row, err error) {
	rows, err := d.engine.Query(ctx, with.SQL+"SELECT "+documentColumns+" FROM documents "+condition, slices.Concat(with.Args, args)...)
	err = scanDocuments(rows, err, func(r *store.Row) { found = append(found, *r) })
	return found, err
}

// withIDs returns the WITH clause of a query that selects documents by their ids.
func (d *documents) withIDs(op store.Op, ids any) internal.Clause {
	return internal.WithIDs(d.engine.Dialect(), store.Condition{Field: internal.IDField, Op: op, Value: ids})
}

func (d *documents) get(ctx context.Context, q store.RowQuery) (all []store.Row, err error) {
	if len(q.Names) == 1 {
		n := q.Names[0]
		return d.find(ctx, d.withIDs(store.Eq, n.Key), "WHERE kind = ? AND id = ?", n.Space, n.Key)
	}
	err = eachKind(q.Names, func(kind string, ids []any) error {
		some := internal.In(ids)
		found, err := d.find(ctx, d.withIDs(store.In, ids), "WHERE kind = ? AND "+some.SQL, append([]any{kind}, some.Args...)...)
		all = append(all, found...)
		return err
	})
	return all, err
}

// eachKind calls fn with the ids of each kind, in parts of at most lookUp.
func eachKind(names []store.RecordName, fn func(kind string, ids []any) error) error {
	for kind, keys := range keysOf(names) {
		for part := range slices.Chunk(keys, lookUp) {
			ids := make([]any, len(part))
			for i, key := range part {
				ids[i] = key
			}
			if err := fn(kind, ids); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *documents) scan(ctx context.Context, q store.RowRange, p *page) error {
	c := store.Condition{Field: internal.IDField, Op: store.Prefix, Value: q.Prefix}
	where, args, err := internal.Where(d.engine.Dialect(), store.DocumentQuery{Kind: q.Space, Where: []store.Condition{c}})
	if err != nil {
		return err
	}
	rows, err := d.engine.Query(ctx, "SELECT "+documentColumns+" FROM documents WHERE "+where+" AND id > ? ORDER BY id LIMIT ?", append(args, q.After, q.Limit)...)
	n := 0
	err = scanDocuments(rows, err, func(r *store.Row) {
		n++
		p.add(r)
	})
	p.More = p.More || n == q.Limit
	return err
}

// changes reads rows and tombstones in one statement, so that no change is missed between two.
func (d *documents) changes(ctx context.Context, q store.RowChanges, p *page) error {
	rows, err := d.engine.Query(ctx, "SELECT "+documentColumns+" FROM documents WHERE seq > ? UNION ALL "+
		"SELECT seq, space, key, '', 0 FROM tea_deleted WHERE feed = ? AND seq > ? ORDER BY 1 LIMIT ?",
		q.After, string(store.DocumentFeed), q.After, q.Limit+1)
	return scanDocuments(rows, err, p.add)
}

const defaultLimit = 1000

// FindDocuments returns documents of one kind.
func (d *Driver) FindDocuments(ctx context.Context, q store.DocumentQuery) ([]store.Row, error) {
	dialect := d.engine.Dialect()
	where, args, err := internal.Where(dialect, q)
	if err != nil {
		return nil, err
	}
	order, err := internal.OrderBy(dialect, q)
	if err != nil {
		return nil, err
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	return d.documents.find(ctx, internal.WithIDs(dialect, q.Where...), "WHERE "+where+order+" LIMIT ? OFFSET ?", append(args, q.Limit, q.Offset)...)
}

// CountDocuments returns the number of documents that match the query, ignoring its limit.
func (d *Driver) CountDocuments(ctx context.Context, q store.DocumentQuery) (int, error) {
	where, args, err := internal.Where(d.engine.Dialect(), q)
	if err != nil {
		return 0, err
	}
	n, err := store.Int(d.engine.Query(ctx, "SELECT count(*) FROM documents WHERE "+where, args...))
	return int(n), err
}

type versionOf struct{ version, seq int64 }

func (d *documents) versions(ctx context.Context, tx store.Tx, names []store.RecordName) (map[store.RecordName]versionOf, error) {
	found := make(map[store.RecordName]versionOf, len(names))
	err := eachKind(names, func(kind string, ids []any) error {
		some, with := internal.In(ids), d.withIDs(store.In, ids)
		n := store.RecordName{Feed: store.DocumentFeed, Space: kind}
		var v versionOf
		rows, err := tx.Query(ctx, with.SQL+"SELECT id, version, seq FROM documents WHERE kind = ? AND "+some.SQL, slices.Concat(with.Args, []any{kind}, some.Args)...)
		return store.Scan(rows, err, func() { found[n] = v }, &n.Key, &v.version, &v.seq)
	})
	if err != nil {
		return nil, fmt.Errorf("read the documents' versions: %w", err)
	}
	return found, nil
}

// write applies the writes of documents in a transaction.
func (d *documents) write(ctx context.Context, tx store.Tx, b *store.Batch, writes []*store.RowWrite) error {
	names := make([]store.RecordName, len(writes))
	for i, w := range writes {
		names[i] = w.RecordName
	}
	versions, err := d.versions(ctx, tx, names)
	if err != nil {
		return err
	}
	for _, w := range writes {
		have, exists := versions[w.RecordName]
		w.Result.Live, w.Result.Seq, w.Result.Version = exists, have.seq, have.version
		w.Result.Unmet = !w.If.Met(exists, have.seq, have.version)
	}
	if refused(b, writes) {
		return errRefused
	}
	all := make([]internal.Written, 0, len(writes))
	for _, w := range writes {
		if w.Result.Unmet {
			continue
		}
		one := internal.Written{Name: internal.Name{Kind: w.Space, ID: w.Key}, Before: w.Result.Version, Seq: d.numbers.nextSeq()}
		if w.Result.Seq = 0; !w.Deleted {
			one.Body, one.Version, w.Result.Seq = w.Body, cmp.Or(w.Version, w.Result.Version+1), one.Seq
		}
		all = append(all, one)
	}
	return d.writeAll(ctx, tx, all, b.Now)
}

// writeAll writes documents with their numbers.
func (d *documents) writeAll(ctx context.Context, tx store.Tx, all []internal.Written, now int64) error {
	gone := map[string][]any{}
	var added, deleted [][]any
	for _, w := range all {
		switch {
		case w.Body == nil && w.Before != 0:
			gone[w.Kind] = append(gone[w.Kind], w.ID)
			deleted = append(deleted, tombstone(store.DocumentFeed, w.Seq, w.Kind, w.ID, now))
		case w.Body == nil:
		case w.Before == 0:
			added = append(added, []any{w.Kind, w.ID, string(w.Body), w.Version, w.Seq})
		default:
			if _, err := tx.Exec(ctx, "UPDATE documents SET body = ?, version = ?, seq = ? WHERE kind = ? AND id = ?", string(w.Body), w.Version, w.Seq, w.Kind, w.ID); err != nil {
				return fmt.Errorf("write %s %s: %w", w.Kind, w.ID, err)
			}
		}
	}
	for kind, ids := range gone {
		for part := range slices.Chunk(ids, lookUp) {
			some := internal.In(part)
			if _, err := tx.Exec(ctx, "DELETE FROM documents WHERE kind = ? AND "+some.SQL, append([]any{kind}, some.Args...)...); err != nil {
				return fmt.Errorf("remove documents: %w", err)
			}
		}
	}
	if err := tx.Append(ctx, tombstoneTable, deleted...); err != nil {
		return fmt.Errorf("add deletions: %w", err)
	}
	if err := tx.Append(ctx, "documents", added...); err != nil {
		return fmt.Errorf("add documents: %w", err)
	}
	return nil
}

// ready reads the last number, once.
func (d *documents) ready(ctx context.Context) error {
	return d.numbers.ready(func() (int64, int64, error) {
		last, err := store.Int(d.engine.Query(ctx, "SELECT coalesce(max(seq), 0) FROM documents"))
		if err != nil {
			return 0, 0, err
		}
		deleted, err := lastTombstone(ctx, d.engine, store.DocumentFeed)
		return max(last, deleted), 0, err
	})
}

// Documents are the documents of a memory, which also change in transactions of its tables.
type Documents struct {
	store.MetadataStore
	documents *documents
}

// Documents returns the documents of the memory on this driver.
func (d *Driver) Documents(of store.MetadataStore) *Documents { return &Documents{of, d.documents} }

// ApplyIn is Apply in a transaction of the caller, which commits the changes.
func (d *Documents) ApplyIn(ctx context.Context, tx store.Tx, changes ...store.Change) error {
	if err := d.documents.ready(ctx); err != nil {
		return err
	}
	names := make([]store.RecordName, len(changes))
	for i, c := range changes {
		if err := internal.Check(c); err != nil {
			return err
		}
		names[i] = store.RecordName{Feed: store.DocumentFeed, Space: c.Kind, Key: c.ID}
	}
	found, err := d.documents.versions(ctx, tx, names)
	if err != nil {
		return err
	}
	versions := make(map[internal.Name]int64, len(found))
	for n, v := range found {
		versions[internal.Name{Kind: n.Space, ID: n.Key}] = v.version
	}
	all, err := internal.Merge(changes, versions)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].Seq = d.documents.numbers.nextSeq()
	}
	return d.documents.writeAll(ctx, tx, all, d.documents.micro())
}

// Below returns the documents of a kind whose ids begin with the folder and a slash, in the order of their ids. It reads
// committed documents if from is nil.
func (d *Documents) Below(ctx context.Context, from internal.Reader, kind, folder string) (found []store.Document, err error) {
	if from == nil {
		from = d.documents.engine
	}
	// "0" follows "/".
	rows, err := from.Query(ctx, "SELECT "+documentColumns+" FROM documents WHERE kind = ? AND id > ? AND id < ? ORDER BY id", kind, folder+"/", folder+"0")
	err = scanDocuments(rows, err, func(r *store.Row) {
		found = append(found, r.Document())
	})
	if err != nil {
		return nil, fmt.Errorf("list %s below %s: %w", kind, folder, err)
	}
	return found, nil
}

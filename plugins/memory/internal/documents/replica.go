package documents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// listed is a row of the feed.
type listed struct {
	store.Document
	deleted bool
}

// Kept reports whether a document is a record of the feed.
type Kept func(d store.Document) bool

// Changes returns the documents that changed after a number; see
// [store.Replica].
func (d *Documents) Changes(ctx context.Context, query store.ChangeQuery, kept Kept) (store.ChangePage, error) {
	if err := d.readSeq(ctx); err != nil {
		return store.ChangePage{}, err
	}
	d.mu.Lock()
	last := d.seq
	d.mu.Unlock()
	// One statement, so that no change is missed between two.
	rows, err := listedRows(d.engine.Query(ctx, "SELECT seq, kind, id, body FROM documents WHERE seq > ? UNION ALL "+
		"SELECT seq, space, key, '' FROM tea_deleted WHERE feed = ? AND seq > ? ORDER BY 1 LIMIT ?",
		query.After, string(store.DocumentFeed), query.After, max(query.Limit, 1)+1))
	if err != nil {
		return store.ChangePage{}, fmt.Errorf("read the changes of the documents: %w", err)
	}
	// Read after the page, which lacks the tombstones removed before.
	if err := deletion.Check(ctx, d.engine, query, last); err != nil {
		return store.ChangePage{}, err
	}
	return deletion.Page(query, rows, func(l listed) int64 { return l.Seq }, func(l listed) (store.Record, bool, error) {
		return l.record(), kept(l.Document), nil
	})
}

// Records returns the documents with these names; see [store.Replica].
func (d *Documents) Records(ctx context.Context, names []store.RecordName, kept Kept) ([]store.Record, error) {
	all := make([]store.Record, len(names))
	at := make(map[store.RecordName]int, len(names))
	for i, name := range names {
		all[i] = store.Record{RecordName: name, Deleted: true}
		at[name] = i
	}
	err := eachKind(names, func(kind string, ids []any) error {
		with, some := withIDs(d.engine.Dialect(), store.Condition{Field: idField, Op: store.In, Value: ids}), in(idField, ids)
		rows, err := listedRows(d.engine.Query(ctx, with.sql+"SELECT seq, kind, id, body FROM documents WHERE kind = ? AND "+some.sql, slices.Concat(with.args, []any{kind}, some.args)...))
		for _, l := range rows {
			if r := l.record(); kept(l.Document) {
				all[at[r.RecordName]] = r
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	return all, nil
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

func listedRows(rows store.Rows, err error) ([]listed, error) {
	var found []listed
	var l listed
	var body string
	err = store.Scan(rows, err, func() {
		l.Body, l.deleted = json.RawMessage(body), body == ""
		found = append(found, l)
	}, &l.Seq, &l.Kind, &l.ID, &body)
	return found, err
}

// times are the timestamps of documents that have them.
type times struct {
	Created clock.Instant `json:"created_at"`
	Updated clock.Instant `json:"updated_at"`
}

func (l listed) record() store.Record {
	if l.deleted {
		return store.Record{RecordName: store.RecordName{Feed: store.DocumentFeed, Space: l.Kind, Key: l.ID}, Seq: l.Seq, Deleted: true}
	}
	return ToRecord(l.Document)
}

// ToRecord returns the record of a document.
func ToRecord(d store.Document) store.Record {
	r := store.Record{RecordName: store.RecordName{Feed: store.DocumentFeed, Space: d.Kind, Key: d.ID}, Seq: d.Seq}
	hash, err := store.DocumentHash(d.Body)
	if err != nil {
		r.Damaged = true
		return r
	}
	r.Hash, r.Body = hash, d.Body
	var t times
	if json.Unmarshal(d.Body, &t) == nil { // not all documents have timestamps
		r.Created, r.Updated = t.Created.Time, t.Updated.Time
	}
	return r
}

// PutIn writes records in a transaction, except those with an error in refused.
// The results are in their order.
func (d *Documents) PutIn(ctx context.Context, tx store.Tx, writes []store.RecordWrite, refused []error) ([]store.PutResult, error) {
	names := make([]store.RecordName, len(writes))
	for i, w := range writes {
		names[i] = w.RecordName
	}
	numbers := make(map[store.RecordName]int64, len(writes))
	err := eachKind(names, func(kind string, ids []any) error {
		some, with := in(idField, ids), withIDs(d.engine.Dialect(), store.Condition{Field: idField, Op: store.In, Value: ids})
		name := store.RecordName{Feed: store.DocumentFeed, Space: kind}
		var seq int64
		rows, err := tx.Query(ctx, with.sql+"SELECT id, seq FROM documents WHERE kind = ? AND "+some.sql, slices.Concat(with.args, []any{kind}, some.args)...)
		return store.Scan(rows, err, func() { numbers[name] = seq }, &name.Key, &seq)
	})
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	results := make([]store.PutResult, len(writes))
	var changes []store.Change
	for i, w := range writes {
		c := store.Change{Kind: w.Space, ID: w.Key, Body: w.Body}
		if w.Deleted {
			c.Body = nil
		} else if w.Body == nil {
			c.Body = json.RawMessage{}
		}
		have := numbers[w.RecordName]
		results[i] = store.PutResult{Seq: have, Err: cmp.Or(refused[i], check(c))}
		switch {
		case results[i].Err != nil || w.Deleted && have == 0:
		case w.If != store.AnySeq && w.If != have:
			results[i].Conflict = true
		default:
			changes = append(changes, c)
			results[i].Seq = -1
		}
	}
	numbered, err := d.applyIn(ctx, tx, changes...)
	if err != nil {
		return nil, err
	}
	for i, w := range writes {
		if results[i].Seq == -1 {
			results[i].Seq = numbered[name{w.Space, w.Key}]
		}
	}
	return results, nil
}

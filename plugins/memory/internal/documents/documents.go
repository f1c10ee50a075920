package documents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Documents is a MetadataStore in a database. An engine has one. It is safe for
// concurrent use.
type Documents struct {
	engine store.QueryEngine
	clock  *clock.Clock

	mu  sync.Mutex
	seq int64 // the last assigned number; 0 = not read yet
}

var _ store.MetadataStore = (*Documents)(nil)

// New creates the store. The caller closes the engine.
func New(engine store.QueryEngine) *Documents { return &Documents{engine: engine, clock: clock.New()} }

const columns = "kind, id, body, version, seq"

// Get returns the document, or an error that wraps store.ErrNotFound.
func (d *Documents) Get(ctx context.Context, kind, id string) (store.Document, error) {
	with := withIDs(d.engine.Dialect(), store.Condition{Field: idField, Op: store.Eq, Value: id})
	found, err := scan(d.engine.Query(ctx, with.sql+"SELECT "+columns+" FROM documents WHERE kind = ? AND id = ?", append(with.args, kind, id)...))
	if err != nil {
		return store.Document{}, fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	if len(found) == 0 {
		return store.Document{}, fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
	}
	return found[0], nil
}

// Query returns documents of one kind.
func (d *Documents) Query(ctx context.Context, query store.DocumentQuery) ([]store.Document, error) {
	wanted, err := where(d.engine.Dialect(), query)
	if err != nil {
		return nil, err
	}
	order, err := ordering(d.engine.Dialect(), query)
	if err != nil {
		return nil, err
	}
	limit := query.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	with := withIDs(d.engine.Dialect(), query.Where...)
	args := append(slices.Concat(with.args, wanted.args), limit, query.Offset)
	found, err := scan(d.engine.Query(ctx, with.sql+"SELECT "+columns+" FROM documents WHERE "+wanted.sql+order+" LIMIT ? OFFSET ?", args...))
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", query.Kind, err)
	}
	return found, nil
}

// Count returns the number of documents that match the query, ignoring its limit.
func (d *Documents) Count(ctx context.Context, query store.DocumentQuery) (int, error) {
	wanted, err := where(d.engine.Dialect(), query)
	if err != nil {
		return 0, err
	}
	n, err := store.Int(d.engine.Query(ctx, "SELECT count(*) FROM documents WHERE "+wanted.sql, wanted.args...))
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", query.Kind, err)
	}
	return int(n), nil
}

// Reader runs queries on documents: a [store.Tx] sees its own changes, a
// [store.QueryEngine] the committed ones.
type Reader interface {
	Query(ctx context.Context, query string, args ...any) (store.Rows, error)
}

// Below returns the documents of a kind whose ids begin with the folder and a slash, in
// the order of their ids. It reads committed documents if from is nil.
func (d *Documents) Below(ctx context.Context, from Reader, kind, folder string) ([]store.Document, error) {
	if from == nil {
		from = d.engine
	}
	// "0" follows "/".
	found, err := scan(from.Query(ctx, "SELECT "+columns+" FROM documents WHERE kind = ? AND id > ? AND id < ? ORDER BY id", kind, folder+"/", folder+"0"))
	if err != nil {
		return nil, fmt.Errorf("list %s below %s: %w", kind, folder, err)
	}
	return found, nil
}

// scan reads documents from rows.
func scan(rows store.Rows, err error) ([]store.Document, error) {
	var found []store.Document
	var doc store.Document
	var body string
	err = store.Scan(rows, err, func() {
		doc.Body = json.RawMessage(body)
		found = append(found, doc)
	}, &doc.Kind, &doc.ID, &body, &doc.Version, &doc.Seq)
	return found, err
}

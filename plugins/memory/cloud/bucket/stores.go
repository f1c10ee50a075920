package bucket

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func (s *shared) stores() *store.Stores {
	acknowledged := "remote"
	if !s.o.remote() {
		acknowledged = "local"
	}
	return &store.Stores{
		Acknowledged: acknowledged, LongTerm: &entries{s: s}, Metadata: documentStore{s}, Vectors: &vectorIndex{s: s}, Blobs: s.blobs, Replica: records{s}, SQL: selector{s}, Tables: tableStore{s},
		Inspect: s.inspect, Reset: s.reset, Close: s.close,
	}
}

func with[T any](ctx context.Context, call func(context.Context, func(*holder) error) error, fn func(*holder) (T, error)) (T, error) {
	var result T
	err := call(ctx, func(t *holder) (err error) {
		result, err = fn(t)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return result, nil
}

// part is a store that can be closed separately.
type part struct{ closed atomic.Bool }

func (p *part) Close() error {
	p.closed.Store(true)
	return nil
}

func (p *part) open() error {
	if p.closed.Load() {
		return errClosed()
	}
	return nil
}

type entries struct {
	part
	s *shared
}

func (e *entries) Store(ctx context.Context, all ...store.Entry) ([]store.Stored, error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	return with(ctx, e.s.write, func(t *holder) ([]store.Stored, error) { return t.longterm.Store(ctx, all...) })
}

func (e *entries) Retrieve(ctx context.Context, namespace, key string) (store.Memory, error) {
	if err := e.open(); err != nil {
		return store.Memory{}, err
	}
	return with(ctx, e.s.read, func(t *holder) (store.Memory, error) { return t.longterm.Retrieve(ctx, namespace, key) })
}

func (e *entries) Delete(ctx context.Context, namespace, key string) (bool, error) {
	if err := e.open(); err != nil {
		return false, err
	}
	return with(ctx, e.s.write, func(t *holder) (bool, error) { return t.longterm.Delete(ctx, namespace, key) })
}

func (e *entries) DeletePrefix(ctx context.Context, namespace, prefix string) (n int, err error) {
	if err := e.open(); err != nil {
		return 0, err
	}
	err = e.s.write(ctx, func(t *holder) error {
		some, err := t.longterm.DeletePrefix(ctx, namespace, prefix)
		n += some
		return err
	})
	return n, err
}

func (e *entries) Search(ctx context.Context, query store.Search) (store.Results, error) {
	if err := e.open(); err != nil {
		return store.Results{}, err
	}
	return with(ctx, e.s.read, func(t *holder) (store.Results, error) { return t.longterm.Search(ctx, query) })
}

// Statistics returns the statistics of the text index for a query.
func (e *entries) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	if err := e.open(); err != nil {
		return fulltext.Statistics{}, err
	}
	return with(ctx, e.s.read, func(t *holder) (fulltext.Statistics, error) { return t.longterm.Statistics(ctx, text) })
}

func (e *entries) List(ctx context.Context, list store.List) (store.Page, error) {
	if err := e.open(); err != nil {
		return store.Page{}, err
	}
	return with(ctx, e.s.read, func(t *holder) (store.Page, error) { return t.longterm.List(ctx, list) })
}

// Sweep also removes objects that a crash has left.
func (e *entries) Sweep(ctx context.Context, before time.Time) (int, error) {
	if err := e.open(); err != nil {
		return 0, err
	}
	return with(ctx, e.s.write, func(t *holder) (int, error) {
		n, err := t.longterm.Sweep(ctx, before)
		if err != nil {
			return n, err
		}
		return n, e.s.sweep(ctx, t)
	})
}

type documentStore struct{ s *shared }

func (d documentStore) Get(ctx context.Context, kind, id string) (store.Document, error) {
	return with(ctx, d.s.read, func(t *holder) (store.Document, error) { return t.documents.Get(ctx, kind, id) })
}

func (d documentStore) Apply(ctx context.Context, changes ...store.Change) error {
	return d.s.write(ctx, func(t *holder) error { return t.documents.Apply(ctx, changes...) })
}

func (d documentStore) Query(ctx context.Context, query store.DocumentQuery) ([]store.Document, error) {
	return with(ctx, d.s.read, func(t *holder) ([]store.Document, error) { return t.documents.Query(ctx, query) })
}

func (d documentStore) Count(ctx context.Context, query store.DocumentQuery) (int, error) {
	return with(ctx, d.s.read, func(t *holder) (int, error) { return t.documents.Count(ctx, query) })
}

type vectorIndex struct {
	part
	s *shared
}

func (v *vectorIndex) Store(ctx context.Context, collection string, items ...store.VectorItem) error {
	if err := v.open(); err != nil {
		return err
	}
	return v.s.write(ctx, func(t *holder) error { return t.vectors.Store(ctx, collection, items...) })
}

func (v *vectorIndex) Delete(ctx context.Context, collection string, ids ...string) (int, error) {
	if err := v.open(); err != nil {
		return 0, err
	}
	return with(ctx, v.s.write, func(t *holder) (int, error) { return t.vectors.Delete(ctx, collection, ids...) })
}

func (v *vectorIndex) Search(ctx context.Context, collection string, query store.VectorQuery) ([]store.VectorHit, error) {
	if err := v.open(); err != nil {
		return nil, err
	}
	return with(ctx, v.s.read, func(t *holder) ([]store.VectorHit, error) { return t.vectors.Search(ctx, collection, query) })
}

func (v *vectorIndex) Get(ctx context.Context, collection string, ids ...string) ([]store.VectorItem, error) {
	if err := v.open(); err != nil {
		return nil, err
	}
	return with(ctx, v.s.read, func(t *holder) ([]store.VectorItem, error) { return t.vectors.Get(ctx, collection, ids...) })
}

func (v *vectorIndex) List(ctx context.Context, collection string, page store.VectorPage) ([]store.VectorItem, error) {
	if err := v.open(); err != nil {
		return nil, err
	}
	return with(ctx, v.s.read, func(t *holder) ([]store.VectorItem, error) { return t.vectors.List(ctx, collection, page) })
}

func (v *vectorIndex) Drop(ctx context.Context, collection string) (items int, existed bool, err error) {
	if err := v.open(); err != nil {
		return 0, false, err
	}
	err = v.s.write(ctx, func(t *holder) (err error) {
		items, existed, err = t.vectors.Drop(ctx, collection)
		return err
	})
	return items, existed, err
}

func (v *vectorIndex) Collections(ctx context.Context) ([]store.Collection, error) {
	if err := v.open(); err != nil {
		return nil, err
	}
	return with(ctx, v.s.read, func(t *holder) ([]store.Collection, error) { return t.vectors.Collections(ctx) })
}

type records struct{ s *shared }

func (r records) Identity(ctx context.Context) (string, error) {
	return with(ctx, r.s.read, func(t *holder) (string, error) { return t.replica.Identity(ctx) })
}

func (r records) Changes(ctx context.Context, query store.ChangeQuery) (store.ChangePage, error) {
	return with(ctx, r.s.read, func(t *holder) (store.ChangePage, error) { return t.replica.Changes(ctx, query) })
}

func (r records) Records(ctx context.Context, names ...store.RecordName) ([]store.Record, error) {
	return with(ctx, r.s.read, func(t *holder) ([]store.Record, error) { return t.replica.Records(ctx, names...) })
}

func (r records) Content(ctx context.Context, hash string) (io.ReadCloser, error) {
	return with(ctx, r.s.read, func(t *holder) (io.ReadCloser, error) { return t.replica.Content(ctx, hash) })
}

func (r records) Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return with(ctx, r.s.write, func(t *holder) ([]store.PutResult, error) { return t.replica.Put(ctx, writes...) })
}

// tableStore has the tables of data.*. Its changes are also reads, because the result of an earlier call may be
// unpublished.
type tableStore struct{ s *shared }

func (x tableStore) Create(ctx context.Context, n store.NewTable) (bool, error) {
	return with(ctx, x.s.read, func(t *holder) (bool, error) { return t.tables.Create(ctx, n) })
}

func (x tableStore) Insert(ctx context.Context, table string, rows []store.TableRow, conflict store.RowConflict, call store.TableCall) (store.TableResult, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableResult, error) { return t.tables.Insert(ctx, table, rows, conflict, call) })
}

func (x tableStore) Update(ctx context.Context, table string, which store.RowSelection, set store.TableRow, call store.TableCall) (store.TableResult, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableResult, error) { return t.tables.Update(ctx, table, which, set, call) })
}

func (x tableStore) UpdateRows(ctx context.Context, table string, rows []store.TableRow, call store.TableCall) (store.TableResult, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableResult, error) { return t.tables.UpdateRows(ctx, table, rows, call) })
}

func (x tableStore) Delete(ctx context.Context, table string, which store.RowSelection, call store.TableCall) (store.TableResult, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableResult, error) { return t.tables.Delete(ctx, table, which, call) })
}

func (x tableStore) Query(ctx context.Context, query store.TableQuery) (store.TableAnswer, error) {
	return with(ctx, x.s.read, func(t *holder) (store.TableAnswer, error) { return t.tables.Query(ctx, query) })
}

func (x tableStore) Rows(ctx context.Context, table, after string, limit int) (rows []json.RawMessage, next string, err error) {
	err = x.s.read(ctx, func(t *holder) (err error) {
		rows, next, err = t.tables.Rows(ctx, table, after, limit)
		return err
	})
	return rows, next, err
}

func (x tableStore) Versions(ctx context.Context) (map[string]int64, error) {
	return with(ctx, x.s.read, func(t *holder) (map[string]int64, error) { return t.tables.Versions(ctx) })
}

func (x tableStore) CountRows(ctx context.Context, table string) (int64, error) {
	return with(ctx, x.s.read, func(t *holder) (int64, error) { return t.tables.CountRows(ctx, table) })
}

func (x tableStore) ChangedRows(ctx context.Context, table string, after int64, limit int) (store.ChangePage, error) {
	return with(ctx, x.s.read, func(t *holder) (store.ChangePage, error) { return t.tables.ChangedRows(ctx, table, after, limit) })
}

func (x tableStore) RowRecords(ctx context.Context, table string, keys ...string) ([]store.Record, error) {
	return with(ctx, x.s.read, func(t *holder) ([]store.Record, error) { return t.tables.RowRecords(ctx, table, keys...) })
}

func (x tableStore) PutRows(ctx context.Context, table string, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return with(ctx, x.s.read, func(t *holder) ([]store.PutResult, error) { return t.tables.PutRows(ctx, table, writes...) })
}

func (x tableStore) Consolidate(ctx context.Context, table string) (store.Consolidated, error) {
	return with(ctx, x.s.read, func(t *holder) (store.Consolidated, error) { return t.tables.Consolidate(ctx, table) })
}

type selector struct{ s *shared }

func (selector) Dialect() store.Dialect { return store.SQLite }

func (q selector) Select(ctx context.Context, query string, sandbox store.Sandbox) (store.Table, error) {
	return with(ctx, q.s.read, func(t *holder) (store.Table, error) {
		box := sandbox
		box.Views = append(slices.Clone(sandbox.Views), t.longterm.View(), vectors.View(store.SQLite))
		return t.engine.Select(ctx, query, box)
	})
}

// inspect returns the numbers of entries and the sizes.
func (s *shared) inspect(ctx context.Context) (numbers, bytes map[string]int64, err error) {
	numbers, bytes = map[string]int64{}, map[string]int64{}
	err = s.read(ctx, func(t *holder) error {
		rows, err := t.engine.Query(ctx, "SELECT 'ltm', count(*) FROM ltm UNION ALL SELECT 'vectors', count(*) FROM vectors UNION ALL SELECT kind, count(*) FROM documents GROUP BY kind")
		var name string
		var n int64
		for _, segment := range t.current().Segments {
			bytes["database"] += segment.Size
		}
		return store.Scan(rows, err, func() { numbers[name] = n }, &name, &n)
	})
	if err != nil {
		return nil, nil, err
	}
	for info, err := range s.blobs.List(ctx, "") {
		if err != nil {
			return nil, nil, err
		}
		bytes["blobs"] += info.Size
	}
	return numbers, bytes, nil
}

// reset removes all data. The memory is then empty.
func (s *shared) reset(ctx context.Context) error {
	if err := s.writable(); err != nil {
		return err
	}
	t, err := s.join(ctx)
	if err != nil {
		return err
	}
	s.retire(t)
	s.leave(t)
	select {
	case <-t.closed:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case s.turn <- struct{}{}: // nobody takes the lease meanwhile
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	g, _, err := acquire(ctx, s.bucket, s.local.device, s.o.lease(), s.o.wait())
	if err != nil {
		return err
	}
	last := g.current.Term
	err = g.swap(ctx, func(h *head) {
		h.Previous, h.Store, h.Holder, h.Version, h.Pages, h.Segments, h.Ended = h.Store, rand.Text(), "", 0, 0, []segment{}, nil
	}, func(head) bool { return false })
	if err != nil {
		return err
	}
	s.local.state, s.local.published = state{}, nil
	if err := s.local.empty(sqlite.Driver{}.File(), "index", "vectors", stateFile); err != nil {
		return err
	}
	for o, err := range s.bucket.List(ctx, segmentPrefix) {
		if err != nil {
			return err
		}
		if term, ok := termOf(o.Name); !ok || term > last {
			continue
		}
		if err := s.bucket.Delete(ctx, o.Name); err != nil {
			return err
		}
	}
	for _, prefix := range []string{"ltm/", "files/"} { // other prefixes are files of memory.cloud_store
		for info, err := range s.blobs.List(ctx, prefix) {
			if err != nil {
				return err
			}
			if err := s.blobs.Delete(ctx, info.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

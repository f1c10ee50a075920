package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Driver is the driver of an embedded database. It is safe for concurrent use.
type Driver struct {
	*options
	entries   *entries
	vectors   *vectors
	documents *documents
	contents  *content.Store
}

// options are shared by the parts of a Driver.
type options struct {
	store.Config
	engine   store.QueryEngine
	search   vector.Options
	readOnly bool
}

func (o *options) micro() int64 { return o.Now().UnixMicro() }

var (
	_ records.Device        = (*Driver)(nil)
	_ store.Driver          = (*Driver)(nil)
	_ store.DocumentFinder  = (*Driver)(nil)
	_ store.Inspector       = (*Driver)(nil)
	_ store.NearestSearcher = (*Driver)(nil)
	_ store.PrefixDeleter   = (*Driver)(nil)
	_ store.TextFilterer    = (*Driver)(nil)
	_ store.TextSearcher    = (*Driver)(nil)
)

// New returns the driver of a database. It ignores the fields of c that concern a server, and Dimension, Owner and
// Logger of search. The files of the companions are in c.Dir. The caller closes the engine and c.Blobs after the
// driver.
func New(e store.QueryEngine, c store.Config, search vector.Options) *Driver {
	o := &options{c, e, search, c.ReadOnly != ""}
	return &Driver{o, newEntries(o), newVectors(o), &documents{options: o}, file.Contents(c.Blobs)}
}

// FileContents returns the contents of files, for records and for the files themselves.
func (d *Driver) FileContents() *content.Store { return d.contents }

// Close ends background work and writes the files of the companions.
func (d *Driver) Close() error { return errors.Join(d.entries.Close(), d.vectors.close()) }

// State returns the state of a feed.
func (d *Driver) State(ctx context.Context, feed store.Feed) (s store.FeedState, err error) {
	if s.Identity, err = d.engine.Identity(ctx); err != nil {
		return s, err
	}
	if s.Last, err = d.last(ctx, feed); err != nil {
		return s, err
	}
	s.Forgotten, err = store.Int(d.engine.Query(ctx, "SELECT coalesce(max(seq), 0) FROM tea_forgotten WHERE feed = ?", string(feed)))
	return s, err
}

// last returns the number of the last change of a feed.
func (d *Driver) last(ctx context.Context, feed store.Feed) (last int64, err error) {
	switch feed {
	case store.EntryFeed:
		err = d.entries.ready(ctx)
		last, _ = d.entries.numbers.last()
	case store.VectorFeed:
		err = d.vectors.ready(ctx)
		last, _ = d.vectors.numbers.last()
	default:
		err = d.documents.ready(ctx)
		last, _ = d.documents.numbers.last()
	}
	return last, err
}

// lookUp is the maximum number of names or ids that one statement looks up.
const lookUp = 500

// eachPart calls fn with a list of parameters and the arguments for the values that one statement looks up.
func eachPart[T any](all []T, fn func(list string, args []any) error) error {
	for len(all) > 0 {
		n := min(len(all), lookUp)
		list, args := store.InList(all[:n])
		if err := fn(list, args); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// Get returns rows and tombstones.
func (d *Driver) Get(ctx context.Context, q store.RowQuery) (rows []store.Row, err error) {
	switch q.Feed {
	case store.EntryFeed:
		rows, err = d.entries.get(ctx, q)
	case store.VectorFeed:
		rows, err = d.vectors.get(ctx, q)
	default:
		rows, err = d.documents.get(ctx, q)
	}
	if err != nil || !q.Numbered || len(rows) == len(q.Names) {
		return rows, err
	}
	gone, err := d.tombstones(ctx, q.Feed, q.Names)
	return append(rows, gone...), err
}

const (
	// maxPage bounds the bodies of a page if the query does not.
	maxPage = 8 << 20
	// expectedRows bounds the initial capacity of a page.
	expectedRows = 128
)

// Scan returns rows of a space in the order of their keys.
func (d *Driver) Scan(ctx context.Context, q store.RowRange) (store.RowPage, error) {
	p := pageOf(q.Limit, q.MaxBytes)
	var err error
	switch q.Feed {
	case store.EntryFeed:
		err = d.entries.scan(ctx, q, p)
	case store.VectorFeed:
		err = d.vectors.scan(ctx, q, p)
	default:
		err = d.documents.scan(ctx, q, p)
	}
	return p.RowPage, err
}

// Changes returns the changes of a feed. It does not restrict them to a collection, because Nearest compares the
// vectors.
func (d *Driver) Changes(ctx context.Context, q store.RowChanges) (store.RowPage, error) {
	if q.Space != "" {
		return store.RowPage{}, fmt.Errorf("read the changes of a collection: %w", store.ErrUnsupported)
	}
	last, err := d.last(ctx, q.Feed)
	if err != nil {
		return store.RowPage{}, err
	}
	p := pageOf(q.Limit, q.MaxBytes)
	switch q.Feed {
	case store.EntryFeed:
		err = d.entries.changes(ctx, q, p)
	case store.VectorFeed:
		err = d.vectors.changes(ctx, q, p)
	default:
		err = d.documents.changes(ctx, q, p)
	}
	if n := len(p.Rows); n > 0 {
		p.Last = p.Rows[n-1].Seq
	}
	if !p.More {
		p.Last = max(p.Last, last)
	}
	return p.RowPage, err
}

// page collects the rows of a page.
type page struct {
	store.RowPage
	limit           int
	bytes, maxBytes int64
}

func pageOf(limit int, maxBytes int64) *page {
	if maxBytes <= 0 {
		maxBytes = maxPage
	}
	p := &page{limit: limit, maxBytes: maxBytes}
	p.Rows = make([]store.Row, 0, min(limit, expectedRows))
	return p
}

// add adds a row, unless the page is full.
func (p *page) add(r *store.Row) {
	p.bytes += int64(len(r.Body) + len(r.Metadata))
	if p.More = p.More || len(p.Rows) == p.limit || p.bytes > p.maxBytes && len(p.Rows) > 0; !p.More {
		p.Rows = append(p.Rows, *r)
	}
}

// Write applies a batch in one transaction.
func (d *Driver) Write(ctx context.Context, b *store.Batch) error { return d.WriteWith(ctx, b, nil) }

// errRefused rolls a transaction back.
var errRefused = errors.New("a write was refused")

// WriteWith is Write, and stores the result of also in the same transaction. also may be nil.
func (d *Driver) WriteWith(ctx context.Context, b *store.Batch, also func() []syncing.SyncedRecord) error {
	w := split(b.Writes)
	if err := d.ready(ctx, w); err != nil {
		return err
	}
	if len(w.entries) > 0 {
		defer d.entries.large.Hold()()
		if err := d.entries.saveLarge(ctx, w.entries); err != nil {
			return err
		}
	}
	var created []string
	err := d.engine.Write(ctx, func(ctx context.Context, tx store.Tx) (err error) {
		for _, one := range b.Writes {
			one.Result = store.RowResult{}
		}
		created, err = d.writeIn(ctx, tx, b, w)
		if err == nil && also != nil {
			err = SetSyncedIn(ctx, tx, also())
		}
		return err
	})
	if err == nil {
		d.vectors.openCreated(ctx, created)
		return nil
	}
	if errors.Is(err, errRefused) {
		return nil
	}
	if len(w.entries) > 0 {
		d.entries.markStale(err)
	}
	d.vectors.markStale(err, w.vectors)
	return err
}

// writes groups the writes of a batch by feed.
type writes struct{ entries, vectors, documents []*store.RowWrite }

func split(all []*store.RowWrite) (w writes) {
	for _, one := range all {
		switch one.Feed {
		case store.EntryFeed:
			w.entries = append(w.entries, one)
		case store.VectorFeed:
			w.vectors = append(w.vectors, one)
		default:
			w.documents = append(w.documents, one)
		}
	}
	return w
}

// ready reads the last numbers of the feeds that are written.
func (d *Driver) ready(ctx context.Context, w writes) (err error) {
	if len(w.entries) > 0 {
		err = d.entries.ready(ctx)
	}
	if len(w.vectors) > 0 {
		err = errors.Join(err, d.vectors.ready(ctx))
	}
	if len(w.documents) > 0 {
		err = errors.Join(err, d.documents.ready(ctx))
	}
	return err
}

func (d *Driver) writeIn(ctx context.Context, tx store.Tx, b *store.Batch, w writes) (created []string, err error) {
	if len(w.entries) > 0 {
		if err := d.entries.write(ctx, tx, b, w.entries); err != nil {
			return nil, err
		}
	}
	if len(w.vectors) > 0 {
		if created, err = d.vectors.write(ctx, tx, b, w.vectors); err != nil {
			return nil, err
		}
	}
	if len(w.documents) > 0 {
		return created, d.documents.write(ctx, tx, b, w.documents)
	}
	return created, nil
}

// Spaces describes collections.
func (d *Driver) Spaces(ctx context.Context, names ...string) ([]store.Space, error) {
	return d.vectors.spaces(ctx, names)
}

// Drop removes a collection.
func (d *Driver) Drop(ctx context.Context, space string) (rows int, existed bool, err error) {
	return d.vectors.drop(ctx, space)
}

// DeletePrefix removes the entries whose keys begin with a prefix.
func (d *Driver) DeletePrefix(ctx context.Context, space, prefix string, now int64) (live int, err error) {
	return d.entries.deletePrefix(ctx, space, prefix, now)
}

// SearchText searches the entries.
func (d *Driver) SearchText(ctx context.Context, q store.TextQuery) (store.TextPage, error) {
	return d.entries.searchText(ctx, q)
}

// FiltersText reports whether SearchText applies the filter.
func (d *Driver) FiltersText() bool { return true }

// Statistics returns the statistics of the live entries for a query, so that other texts can be ranked together with
// the entries.
func (d *Driver) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	return d.entries.Statistics(ctx, text)
}

// Nearest searches a collection.
func (d *Driver) Nearest(ctx context.Context, space string, q store.VectorQuery) ([]store.Row, []float64, error) {
	return d.vectors.nearest(ctx, space, q)
}

// WaitBuilt waits until the graph of a collection is complete. Searches work without it.
func (d *Driver) WaitBuilt(ctx context.Context, collection string) error {
	c, err := d.vectors.collection(ctx, collection)
	if err != nil {
		return err
	}
	return c.index.WaitBuilt(ctx)
}

// Sweep removes expired entries and old tombstones, and the contents that no entry refers to.
func (d *Driver) Sweep(ctx context.Context, expired, deleted int64) (int, error) {
	n, err := d.entries.sweep(ctx, expired)
	return n, errors.Join(err, d.forget(ctx, deleted))
}

// SweepContents removes the blobs of values that no entry refers to. It needs no free space.
func (d *Driver) SweepContents(ctx context.Context) error { return d.entries.sweepContents(ctx) }

// Inspect returns the numbers of rows.
func (d *Driver) Inspect(ctx context.Context) (entries, bytes map[string]int64, err error) {
	rows, err := d.engine.Query(ctx, "SELECT 'ltm', count(*) FROM ltm UNION ALL SELECT 'vectors', count(*) FROM vectors UNION ALL SELECT kind, count(*) FROM documents GROUP BY kind")
	entries = map[string]int64{}
	var name string
	var n int64
	err = store.Scan(rows, err, func() { entries[name] = n }, &name, &n)
	return entries, map[string]int64{}, err
}

// Views returns the tables memories and vectors for queries of workflows.
func (d *Driver) Views() []store.View { return []store.View{d.entries.view(), d.vectors.view()} }

// keysOf groups the keys of names by space.
func keysOf(names []store.RecordName) map[string][]string {
	bySpace := map[string][]string{}
	for _, n := range names {
		bySpace[n.Space] = append(bySpace[n.Space], n.Key)
	}
	return bySpace
}

// refused reports whether an atomic batch must not be applied because of one of its writes.
func refused(b *store.Batch, writes []*store.RowWrite) bool {
	return b.Atomic && slices.ContainsFunc(writes, func(w *store.RowWrite) bool { return w.Result.Unmet || w.Result.Dimension != 0 })
}

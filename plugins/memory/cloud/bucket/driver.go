package bucket

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func (s *shared) stores() *store.Stores {
	stores := records.OpenFinder(&driver{s}, s.c)
	stores.SQL, stores.Tables, stores.Acknowledged = selector{s}, tableStore{s}, "remote"
	if !s.o.remote() {
		stores.Acknowledged = "local"
	}
	return stores
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

// driver forwards calls to the embedded database of the process that holds the lease.
type driver struct{ s *shared }

var (
	_ store.ContentStore    = (*driver)(nil)
	_ store.DocumentFinder  = (*driver)(nil)
	_ store.Driver          = (*driver)(nil)
	_ store.Inspector       = (*driver)(nil)
	_ store.NearestSearcher = (*driver)(nil)
	_ store.PrefixDeleter   = (*driver)(nil)
	_ store.Resetter        = (*driver)(nil)
	_ store.TextFilterer    = (*driver)(nil)
	_ store.TextSearcher    = (*driver)(nil)
)

func (d *driver) Contents() store.BlobStorage { return d.s.blobs }

func (d *driver) Close() error { return d.s.close() }

func (d *driver) State(ctx context.Context, feed store.Feed) (store.FeedState, error) {
	return with(ctx, d.s.read, func(t *holder) (store.FeedState, error) { return t.driver.State(ctx, feed) })
}

func (d *driver) Get(ctx context.Context, q store.RowQuery) ([]store.Row, error) {
	rows, err := with(ctx, d.s.read, func(t *holder) ([]store.Row, error) { return t.driver.Get(ctx, q) })
	return d.lazy(rows), err
}

// lazy makes Load of the rows a separate call, because the lease may have ended by then.
func (d *driver) lazy(rows []store.Row) []store.Row {
	for i := range rows {
		if rows[i].Load == nil {
			continue
		}
		name := rows[i].RecordName
		rows[i].Load = func(ctx context.Context) (store.Row, error) {
			return with(ctx, d.s.read, func(t *holder) (store.Row, error) {
				found, err := t.driver.Get(ctx, store.RowQuery{Feed: name.Feed, Names: []store.RecordName{name}, Numbered: true})
				if i := slices.IndexFunc(found, func(r store.Row) bool { return !r.Deleted }); i < 0 || err != nil {
					return store.Row{RecordName: name, Deleted: true}, err
				} else if found[i].Load != nil {
					return found[i].Load(ctx)
				} else {
					return found[i], nil
				}
			})
		}
	}
	return rows
}

func (d *driver) Scan(ctx context.Context, q store.RowRange) (store.RowPage, error) {
	page, err := with(ctx, d.s.read, func(t *holder) (store.RowPage, error) { return t.driver.Scan(ctx, q) })
	d.lazy(page.Rows)
	return page, err
}

func (d *driver) Changes(ctx context.Context, q store.RowChanges) (store.RowPage, error) {
	page, err := with(ctx, d.s.read, func(t *holder) (store.RowPage, error) { return t.driver.Changes(ctx, q) })
	d.lazy(page.Rows)
	return page, err
}

// Write runs as a read, too: the state that makes a condition fail may not be published yet.
func (d *driver) Write(ctx context.Context, b *store.Batch) error {
	if err := d.s.writable(); err != nil {
		return err
	}
	return d.s.read(ctx, func(t *holder) error { return t.driver.Write(ctx, b) })
}

func (d *driver) Spaces(ctx context.Context, names ...string) ([]store.Space, error) {
	return with(ctx, d.s.read, func(t *holder) ([]store.Space, error) { return t.driver.Spaces(ctx, names...) })
}

func (d *driver) Drop(ctx context.Context, space string) (rows int, existed bool, err error) {
	err = d.s.write(ctx, func(t *holder) (err error) {
		rows, existed, err = t.driver.Drop(ctx, space)
		return err
	})
	return rows, existed, err
}

// Sweep also removes objects that a crash has left.
func (d *driver) Sweep(ctx context.Context, expired, deleted int64) (int, error) {
	return with(ctx, d.s.write, func(t *holder) (int, error) {
		n, err := t.driver.Sweep(ctx, expired, deleted)
		if err != nil {
			return n, err
		}
		return n, d.s.sweep(ctx, t)
	})
}

func (d *driver) DeletePrefix(ctx context.Context, space, prefix string, now int64) (n int, err error) {
	err = d.s.write(ctx, func(t *holder) error {
		some, err := t.driver.DeletePrefix(ctx, space, prefix, now)
		n += some
		return err
	})
	return n, err
}

func (d *driver) FindDocuments(ctx context.Context, q store.DocumentQuery) ([]store.Row, error) {
	return with(ctx, d.s.read, func(t *holder) ([]store.Row, error) { return t.driver.FindDocuments(ctx, q) })
}

func (d *driver) CountDocuments(ctx context.Context, q store.DocumentQuery) (int, error) {
	return with(ctx, d.s.read, func(t *holder) (int, error) { return t.driver.CountDocuments(ctx, q) })
}

func (d *driver) SearchText(ctx context.Context, q store.TextQuery) (store.TextPage, error) {
	page, err := with(ctx, d.s.read, func(t *holder) (store.TextPage, error) { return t.driver.SearchText(ctx, q) })
	d.lazy(page.Rows)
	return page, err
}

// FiltersText reports whether SearchText applies the filter.
func (d *driver) FiltersText() bool { return true }

// Statistics returns the statistics of the text index for a query.
func (d *driver) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	return with(ctx, d.s.read, func(t *holder) (fulltext.Statistics, error) { return t.driver.Statistics(ctx, text) })
}

func (d *driver) Nearest(ctx context.Context, space string, q store.VectorQuery) (rows []store.Row, similarities []float64, err error) {
	err = d.s.read(ctx, func(t *holder) (err error) {
		rows, similarities, err = t.driver.Nearest(ctx, space, q)
		return err
	})
	return rows, similarities, err
}

// Inspect returns the numbers of entries and the sizes.
func (d *driver) Inspect(ctx context.Context) (numbers, bytes map[string]int64, err error) {
	err = d.s.read(ctx, func(t *holder) (err error) {
		numbers, bytes, err = t.driver.Inspect(ctx)
		for _, segment := range t.current().Segments {
			bytes["database"] += segment.Size
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for info, err := range d.s.blobs.List(ctx, "") {
		if err != nil {
			return nil, nil, err
		}
		bytes["blobs"] += info.Size
	}
	return numbers, bytes, nil
}

// Reset removes all data. The memory is then empty.
func (d *driver) Reset(ctx context.Context) error {
	s := d.s
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

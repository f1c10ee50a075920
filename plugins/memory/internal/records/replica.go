package records

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	documentrecords "github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	internal "github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Device is a Driver whose memory synchronizes with others by itself, and stores the state that it has in common with
// them.
type Device interface {
	// WriteWith is Write, and stores the result of also in the same transaction. It can call also several times.
	WriteWith(ctx context.Context, b *store.Batch, also func() []syncing.SyncedRecord) error
	Base() syncing.Base
}

// newReplica returns the records of a memory, a [syncing.Device] if the driver is a
// Device.
func newReplica(m *memory, s *store.Stores) store.Replica {
	r := &records{m: m, catalog: catalog.New(s.Metadata, clock.New())}
	if d, ok := m.driver.(interface{ FileContents() *content.Store }); ok {
		r.contents = d.FileContents()
	} else {
		r.contents = file.Contents(s.Blobs)
	}
	if d, ok := m.driver.(Device); ok {
		return &device{r, d}
	}
	return r
}

type device struct {
	*records
	driver Device
}

var _ syncing.Device = (*device)(nil)

// PutWith is Put, and stores the result of also in the same transaction, which can run more than once. also can be nil.
func (d *device) PutWith(ctx context.Context, writes []store.RecordWrite, also func(results []store.PutResult) []syncing.SyncedRecord) ([]store.PutResult, error) {
	if also == nil {
		return d.Put(ctx, writes...)
	}
	return d.put(ctx, writes, func(ctx context.Context, b *store.Batch, results func() []store.PutResult) error {
		return d.driver.WriteWith(ctx, b, func() []syncing.SyncedRecord { return also(results()) })
	})
}

func (d *device) Base() syncing.Base { return d.driver.Base() }

// records implements the replica on rows.
type records struct {
	m        *memory
	contents *content.Store
	catalog  *catalog.Catalog
}

var _ store.Replica = (*records)(nil)

func (r *records) Identity(ctx context.Context) (string, error) {
	s, err := r.m.driver.State(ctx, store.EntryFeed)
	if err != nil || s.Identity != "" || r.m.ReadOnly != "" {
		return s.Identity, err
	}
	if err := r.m.driver.Write(ctx, &store.Batch{Now: r.m.micro()}); err != nil {
		return "", err
	}
	s, err = r.m.driver.State(ctx, store.EntryFeed)
	return s.Identity, err
}

func (r *records) Changes(ctx context.Context, q store.ChangeQuery) (store.ChangePage, error) {
	if !slices.Contains(store.Feeds(), q.Feed) {
		return store.ChangePage{}, unknownFeed(q.Feed)
	}
	kept, err := r.kept(ctx, q.Feed, false)
	if err != nil {
		return store.ChangePage{}, err
	}
	all, more, err := r.changed(ctx, q)
	if err != nil {
		return store.ChangePage{}, fmt.Errorf("read the changes of %s: %w", q.Feed, err)
	}
	if q.After > 0 { // after the page was read, because deletions that were removed before are missing in it
		s, err := r.m.driver.State(ctx, q.Feed)
		if err != nil {
			return store.ChangePage{}, fmt.Errorf("read the deletions of %s: %w", q.Feed, err)
		}
		if err := checkBounds(q, s.Forgotten, s.Last); err != nil {
			return store.ChangePage{}, err
		}
	}
	page := pageOf(q, all, kept)
	page.More = page.More || more
	return page, nil
}

// changed returns the first records of a feed after a number, possibly more than the query's limit.
func (r *records) changed(ctx context.Context, q store.ChangeQuery) (all []store.Record, more bool, err error) {
	read := store.RowChanges{Feed: q.Feed, After: q.After, FromStart: q.FromStart, Limit: max(q.Limit, 1) + 1, MaxBytes: q.MaxBytes}
	for {
		page, err := r.m.driver.Changes(ctx, read)
		if err != nil {
			return nil, false, err
		}
		if all, err = r.m.toRecords(ctx, page.Rows); err != nil || len(all) > 0 || !page.More {
			return all, page.More, err
		}
		read.After = page.Last
	}
}

// kept returns a function that reports whether a row belongs to the replica. device includes the kinds of documents
// that stay on the device.
func (r *records) kept(ctx context.Context, feed store.Feed, device bool) (func(*store.Record) bool, error) {
	if feed != store.DocumentFeed {
		return func(*store.Record) bool { return true }, nil
	}
	kept, err := keptOf(ctx, r.catalog, device)
	return func(one *store.Record) bool {
		return one.Deleted || kept(store.Document{Kind: one.Space, ID: one.Key, Body: one.Body})
	}, err
}

func (r *records) Records(ctx context.Context, names ...store.RecordName) ([]store.Record, error) {
	return eachFeed(names, func(feed store.Feed, some []store.RecordName) ([]store.Record, error) {
		kept, err := r.kept(ctx, feed, true)
		if err != nil {
			return nil, err
		}
		rows, err := r.m.driver.Get(ctx, store.RowQuery{Feed: feed, Names: some, Numbered: true})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", feed, err)
		}
		found, err := r.m.toRecords(ctx, rows)
		if err != nil {
			return nil, err
		}
		byName := make(map[store.RecordName]store.Record, len(found))
		for _, one := range found {
			if have, twice := byName[one.RecordName]; twice && (!have.Deleted || one.Deleted && one.Seq < have.Seq) {
				continue // a tombstone of a record that was stored again
			}
			if addContent(&one); kept(&one) {
				byName[one.RecordName] = one
			}
		}
		all := make([]store.Record, len(some))
		for i, name := range some {
			one, ok := byName[name]
			if !ok {
				one = store.Record{RecordName: name, Deleted: true}
			}
			all[i] = one
		}
		return all, nil
	})
}

func (r *records) Content(ctx context.Context, hash string) (io.ReadCloser, error) {
	if err := checkHash(hash); err != nil {
		return nil, err
	}
	defer r.contents.Hold()()
	return r.contents.Open(ctx, hash)
}

// Put writes records in one transaction, or in several if the driver limits their size.
func (r *records) Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return r.put(ctx, writes, func(ctx context.Context, b *store.Batch, _ func() []store.PutResult) error {
		if len(b.Writes) == 0 {
			return nil
		}
		return r.m.driver.Write(ctx, b)
	})
}

// put writes records with a function; results converts the results of the batch.
func (r *records) put(ctx context.Context, writes []store.RecordWrite, do func(ctx context.Context, b *store.Batch, results func() []store.PutResult) error) ([]store.PutResult, error) {
	if err := r.m.writable(); err != nil {
		return nil, err
	}
	all := make([]store.PutResult, len(writes))
	b := &store.Batch{Numbered: true, Now: r.m.micro()}
	var at []int // positions of the batch's writes
	for i, w := range writes {
		if !slices.Contains(store.Feeds(), w.Feed) {
			return nil, unknownFeed(w.Feed)
		}
		one, refused, err := r.toWrite(ctx, w, b.Now)
		if err != nil {
			return nil, err
		}
		if all[i].Err = refused; refused == nil {
			at, b.Writes = append(at, i), append(b.Writes, one)
		}
	}
	results := func() []store.PutResult {
		for n, i := range at {
			all[i] = toResult(b.Writes[n])
		}
		return all
	}
	if err := do(ctx, b, results); err != nil {
		return nil, err
	}
	return results(), nil
}

// toWrite validates a write and stores the content of its file. refused is set if the record cannot be stored.
func (r *records) toWrite(ctx context.Context, w store.RecordWrite, now int64) (one *store.RowWrite, refused, err error) {
	one = &store.RowWrite{Row: store.Row{RecordName: w.RecordName, Deleted: w.Deleted}}
	if w.If != store.AnySeq {
		one.If = store.Precondition{Absent: w.If == 0, Seq: w.If}
	}
	switch {
	case w.Feed == store.DocumentFeed:
		c := store.Change{Kind: w.Space, ID: w.Key}
		if !w.Deleted {
			c.Body = append([]byte{}, w.Body...) // not nil, which would remove the document
		}
		if refused = documentrecords.Check(c); refused == nil {
			refused, err = saveContent(ctx, w, r.has, r.contents.Save)
		}
		one.Row = documentRow(w.RecordName, c.Body, 0)
	case w.Feed == store.EntryFeed && w.Deleted:
		refused = longterm.CheckName(w.Space, w.Key)
	case w.Deleted:
	case w.Feed == store.EntryFeed:
		var c longterm.Canonical
		c, refused = longterm.FromRecord(w.Record, r.m.InlineBytes)
		one.Row = entryRow(w.RecordName, c)
		one.Created, one.Updated = now, now
		if !w.Created.IsZero() {
			one.Created = w.Created.UnixMicro()
		}
		if !w.Updated.IsZero() {
			one.Updated = w.Updated.UnixMicro()
		}
	default:
		var item store.VectorItem
		var metadata string
		item, metadata, refused = internal.FromRecord(w.Record)
		one.Row = vectorRow(w.RecordName, item, metadata)
	}
	if refused == nil {
		refused = r.m.tooLarge(&one.Row)
	}
	return one, refused, err
}

func (r *records) has(ctx context.Context, hash string) bool {
	_, err := r.contents.Stat(ctx, hash)
	return err == nil
}

func toResult(w *store.RowWrite) store.PutResult {
	r := store.PutResult{Seq: w.Result.Seq, Conflict: w.Result.Unmet, Err: w.Result.Err}
	if w.Result.Dimension != 0 {
		r.Err = internal.WrongDimension(w.Space, len(w.Body)/4, w.Result.Dimension)
	}
	return r
}

func (m *memory) toRecords(ctx context.Context, rows []store.Row) ([]store.Record, error) {
	all := make([]store.Record, 0, len(rows))
	for i := range rows {
		if rows[i].Swept {
			continue
		}
		r, exists, err := m.toRecord(ctx, &rows[i])
		if err != nil {
			return nil, err
		}
		if exists {
			all = append(all, r)
		}
	}
	return all, nil
}

func (m *memory) toRecord(ctx context.Context, r *store.Row) (one store.Record, exists bool, err error) {
	switch {
	case r.Deleted:
		return store.Record{RecordName: r.RecordName, Deleted: true, Seq: r.Seq, Updated: clock.FromMicro(r.Updated)}, true, nil
	case r.Damaged != nil:
		return store.Record{RecordName: r.RecordName, Seq: r.Seq, Damaged: true}, true, nil
	case r.Feed == store.EntryFeed:
		e, exists, err := m.toMemory(ctx, r, false)
		if err != nil || !exists {
			return one, false, err
		}
		one, err = longterm.ToRecord(e, r.Seq)
		return one, true, err
	case r.Feed == store.VectorFeed:
		body := store.VectorBody{Text: r.Text, Embedding: internal.Decode(r.Body)}
		if r.Metadata != "" {
			body.Metadata = json.RawMessage(r.Metadata)
		}
		return internal.ToRecord(r.Space, r.Key, r.Seq, body), true, nil
	}
	return documentrecords.ToRecord(r.Document()), true, nil
}

package records

import (
	"context"
	"encoding/json"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	documentrecords "github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/replica"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	internal "github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Device is a Driver whose memory synchronizes with others by itself: it stores what it
// has agreed on with them.
type Device interface {
	// WriteWith is Write, and stores what also returns together with the rows. It can call
	// also several times.
	WriteWith(ctx context.Context, b *store.Batch, also func() []syncing.SyncedRecord) error
	Base() syncing.Base
}

// newReplica returns the records of a memory, a [syncing.Device] if the driver is a
// Device.
func newReplica(m *memory, s *store.Stores) store.Replica {
	shared := func(also func(*replica.Writes) []syncing.SyncedRecord) *replica.Shared {
		return replica.NewShared(tables{m, also}, s.Metadata, s.Blobs, m.InlineBytes)
	}
	if d, ok := m.driver.(Device); ok {
		return &device{shared(nil), d, shared}
	}
	return shared(nil)
}

type device struct {
	*replica.Shared
	driver Device
	with   func(also func(*replica.Writes) []syncing.SyncedRecord) *replica.Shared
}

var _ syncing.Device = (*device)(nil)

// PutWith is Put, and writes what also returns in the same transaction, which can run
// more than once. also can be nil.
func (d *device) PutWith(ctx context.Context, writes []store.RecordWrite, also func(results []store.PutResult) []syncing.SyncedRecord) ([]store.PutResult, error) {
	if also == nil {
		return d.Put(ctx, writes...)
	}
	return d.with(func(w *replica.Writes) []syncing.SyncedRecord { return also(w.Results()) }).PutAll(ctx, writes)
}

// Base is what the memory has agreed on with others.
func (d *device) Base() syncing.Base { return d.driver.Base() }

// tables are the rows as records.
type tables struct {
	m *memory
	// also are the agreements to store with a Put; nil = none.
	also func(*replica.Writes) []syncing.SyncedRecord
}

var _ replica.Tables = tables{}

// Identity identifies the contents.
func (t tables) Identity(ctx context.Context) (string, error) {
	s, err := t.m.driver.State(ctx, store.EntryFeed)
	if err != nil || s.Identity != "" || t.m.ReadOnly != "" {
		return s.Identity, err
	}
	if err := t.m.driver.Write(ctx, &store.Batch{Now: t.m.micro()}); err != nil {
		return "", err
	}
	s, err = t.m.driver.State(ctx, store.EntryFeed)
	return s.Identity, err
}

// Bounds returns the numbers between which all deletions are known.
func (t tables) Bounds(ctx context.Context, feed store.Feed) (forgotten, last int64, err error) {
	s, err := t.m.driver.State(ctx, feed)
	return s.Forgotten, s.Last, err
}

// Page returns the first records of a feed after a number.
func (t tables) Page(ctx context.Context, q store.ChangeQuery) (all []store.Record, more bool, err error) {
	read := store.RowChanges{Feed: q.Feed, After: q.After, FromStart: q.FromStart, Limit: max(q.Limit, 1) + 1, MaxBytes: q.MaxBytes}
	for {
		page, err := t.m.driver.Changes(ctx, read)
		if err != nil {
			return nil, false, err
		}
		if all, err = toRecords(page.Rows); err != nil || len(all) > 0 || !page.More {
			return all, page.More, err
		}
		read.After = page.Last
	}
}

// Named returns the records with these names.
func (t tables) Named(ctx context.Context, feed store.Feed, names []store.RecordName) ([]store.Record, error) {
	rows, err := t.m.driver.Get(ctx, store.RowQuery{Feed: feed, Names: names, Numbered: true})
	if err != nil {
		return nil, err
	}
	return toRecords(rows)
}

func toRecords(rows []store.Row) ([]store.Record, error) {
	all := make([]store.Record, 0, len(rows))
	for i := range rows {
		if rows[i].Swept {
			continue
		}
		r, err := toRecord(&rows[i])
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func toRecord(r *store.Row) (store.Record, error) {
	switch {
	case r.Deleted:
		return store.Record{RecordName: r.RecordName, Deleted: true, Seq: r.Seq, Updated: clock.FromMicro(r.Updated)}, nil
	case r.Damaged != nil:
		return store.Record{RecordName: r.RecordName, Seq: r.Seq, Damaged: true}, nil
	case r.Feed == store.EntryFeed:
		return longterm.ToRecord(toMemory(r, false), r.Seq)
	case r.Feed == store.VectorFeed:
		body := store.VectorBody{Text: r.Text, Embedding: internal.Decode(r.Body)}
		if r.Metadata != "" {
			body.Metadata = json.RawMessage(r.Metadata)
		}
		return internal.ToRecord(r.Space, r.Key, r.Seq, body), nil
	}
	return documentrecords.ToRecord(toDocument(r)), nil
}

// Put does the writes in one transaction, or in parts if the driver's are bounded.
func (t tables) Put(ctx context.Context, w *replica.Writes) error {
	if err := t.m.writable(); err != nil {
		return err
	}
	b := &store.Batch{Numbered: true, Now: t.m.micro()}
	var writes []*replica.Write
	for _, some := range [][]*replica.Write{w.Entries, w.Vectors, w.Documents} {
		for _, one := range some {
			w := t.toWrite(one, b.Now)
			if one.Result.Err = t.m.tooLarge(&w.Row); one.Result.Err == nil {
				writes, b.Writes = append(writes, one), append(b.Writes, w)
			}
		}
	}
	finish := func() {
		for i, one := range writes {
			one.Result = toResult(b.Writes[i])
		}
	}
	if t.also == nil {
		err := t.m.driver.Write(ctx, b)
		finish()
		return err
	}
	d, _ := t.m.driver.(Device)
	return d.WriteWith(ctx, b, func() []syncing.SyncedRecord {
		finish()
		return t.also(w)
	})
}

func (t tables) toWrite(w *replica.Write, now int64) *store.RowWrite {
	one := &store.RowWrite{Row: store.Row{RecordName: w.RecordName, Deleted: w.Deleted}}
	if w.If != store.AnySeq {
		one.If = store.Precondition{Absent: w.If == 0, Seq: w.If}
	}
	switch {
	case w.Deleted:
	case w.Feed == store.EntryFeed:
		one.Row = entryRow(w.RecordName, w.Entry)
		one.Created, one.Updated = now, now
		if !w.Created.IsZero() {
			one.Created = w.Created.UnixMicro()
		}
		if !w.Updated.IsZero() {
			one.Updated = w.Updated.UnixMicro()
		}
	case w.Feed == store.VectorFeed:
		one.Row = vectorRow(w.RecordName, w.Item, w.Metadata)
	default:
		one.Row = documentRow(w.RecordName, w.Body, 0)
	}
	return one
}

func toResult(w *store.RowWrite) store.PutResult {
	r := store.PutResult{Seq: w.Result.Seq, Conflict: w.Result.Unmet, Err: w.Result.Err}
	if w.Result.Dimension != 0 {
		r.Err = internal.WrongDimension(w.Space, len(w.Body)/4, w.Result.Dimension)
	}
	return r
}

package vectors

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// listed is a row of the feed; without an embedding, a tombstone.
type listed struct {
	seq              int64
	collection, name string
	text             string
	embedding        []byte
	metadata         []byte
}

// Changes returns the items that changed after a number; see [store.Replica].
func (x *Index) Changes(ctx context.Context, query store.ChangeQuery) (store.ChangePage, error) {
	if err := x.ready(ctx); err != nil {
		return store.ChangePage{}, err
	}
	x.mu.Lock()
	last := x.seq
	x.mu.Unlock()
	// One statement, so that no change is missed between two.
	rows, err := x.listed(ctx, "SELECT seq, collection, name, text, embedding, metadata FROM vectors WHERE seq > ? UNION ALL "+
		"SELECT seq, space, key, '', NULL, NULL FROM tea_deleted WHERE feed = ? AND seq > ? ORDER BY 1 LIMIT ?",
		query.After, string(store.VectorFeed), query.After, max(query.Limit, 1)+1)
	if err != nil {
		return store.ChangePage{}, err
	}
	// Read after the page, which lacks the tombstones removed before.
	if err := deletion.Check(ctx, x.o.Engine, query, last); err != nil {
		return store.ChangePage{}, err
	}
	return deletion.Page(query, rows, func(l listed) int64 { return l.seq }, func(l listed) (store.Record, bool, error) {
		return l.record(), true, nil
	})
}

// Records returns the items with these names; see [store.Replica].
func (x *Index) Records(ctx context.Context, names []store.RecordName) ([]store.Record, error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	all := make([]store.Record, len(names))
	at := make(map[store.RecordName]int, len(names))
	for i, name := range names {
		all[i] = store.Record{RecordName: name, Deleted: true}
		at[name] = i
	}
	ids, err := x.idsOfAll(ctx, x.o.Engine.Query, names)
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(slices.Collect(maps.Values(ids)), lookUp) {
		list, args := store.InList(part)
		rows, err := x.listed(ctx, "SELECT seq, collection, name, text, embedding, metadata FROM vectors WHERE id IN "+list, args...)
		if err != nil {
			return nil, err
		}
		for _, l := range rows {
			r := l.record()
			all[at[r.RecordName]] = r
		}
	}
	return all, nil
}

// idsOfAll returns the ids of the rows that exist.
func (x *Index) idsOfAll(ctx context.Context, query queryFunc, names []store.RecordName) (map[store.RecordName]int64, error) {
	found := make(map[store.RecordName]int64, len(names))
	byCollection := map[string][]string{}
	for _, name := range names {
		byCollection[name.Space] = append(byCollection[name.Space], name.Key)
	}
	for collection, keys := range byCollection {
		ids, err := x.idsOf(ctx, query, collection, keys)
		if err != nil {
			return nil, err
		}
		for key, id := range ids {
			found[store.RecordName{Feed: store.VectorFeed, Space: collection, Key: key}] = id
		}
	}
	return found, nil
}

func (x *Index) listed(ctx context.Context, query string, args ...any) ([]listed, error) {
	rows, err := x.o.Engine.Query(ctx, query, args...)
	var found []listed
	var l listed
	err = store.Scan(rows, err, func() {
		found = append(found, l)
		l.embedding, l.metadata = nil, nil // not shared with the next row
	}, &l.seq, &l.collection, &l.name, &l.text, &l.embedding, &l.metadata)
	return found, err
}

func (l listed) record() store.Record {
	if l.embedding == nil {
		return store.Record{RecordName: store.RecordName{Feed: store.VectorFeed, Space: l.collection, Key: l.name}, Seq: l.seq, Deleted: true}
	}
	return ToRecord(l.collection, l.name, l.seq, store.VectorBody{Text: l.text, Embedding: fromBytes(l.embedding), Metadata: l.metadata})
}

// ToRecord returns the record of an item.
func ToRecord(collection, id string, seq int64, body store.VectorBody) store.Record {
	r := store.Record{RecordName: store.RecordName{Feed: store.VectorFeed, Space: collection, Key: id}, Seq: seq}
	if body.Metadata != nil && !json.Valid(body.Metadata) {
		r.Damaged = true
		return r
	}
	r.Hash = store.VectorHash(body.Text, body.Embedding, string(body.Metadata))
	var err error
	if r.Body, err = json.Marshal(body); err != nil {
		r.Damaged = true // a non-finite number
	}
	return r
}

// PutIn writes records in a transaction. The results have the same order.
func (x *Index) PutIn(ctx context.Context, tx store.Tx, writes []store.RecordWrite) ([]store.PutResult, error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	p := &putCall{x: x, tx: tx, writes: writes, results: make([]store.PutResult, len(writes)), dimensions: map[string]int{}}
	if err := p.read(ctx); err != nil {
		return nil, err
	}
	for i := range writes {
		if err := p.put(ctx, i); err != nil {
			return nil, err
		}
	}
	return p.results, p.flush(ctx)
}

// putCall is a call of PutIn.
type putCall struct {
	x       *Index
	tx      store.Tx
	writes  []store.RecordWrite
	results []store.PutResult

	ids        map[store.RecordName]int64
	numbers    map[int64]int64 // by id
	dimensions map[string]int
	// rows are the rows to write to one collection, with their positions in the writes.
	rows       []*row
	at         []int
	collection string
}

// read reads the ids and numbers of the rows that exist.
func (p *putCall) read(ctx context.Context) (err error) {
	names := make([]store.RecordName, len(p.writes))
	for i, w := range p.writes {
		names[i] = w.RecordName
	}
	if p.ids, err = p.x.idsOfAll(ctx, p.tx.Query, names); err != nil {
		return err
	}
	p.numbers = make(map[int64]int64, len(p.ids))
	for part := range slices.Chunk(slices.Collect(maps.Values(p.ids)), lookUp) {
		list, args := store.InList(part)
		rows, err := p.tx.Query(ctx, "SELECT id, seq FROM vectors WHERE id IN "+list, args...)
		var id, seq int64
		if err := store.Scan(rows, err, func() { p.numbers[id] = seq }, &id, &seq); err != nil {
			return err
		}
	}
	return nil
}

func (p *putCall) put(ctx context.Context, i int) error {
	w, result := p.writes[i], &p.results[i]
	id := p.ids[w.RecordName]
	result.Seq = p.numbers[id]
	switch {
	case w.If != store.AnySeq && w.If != result.Seq:
		result.Conflict = true
		return nil
	case w.Deleted && result.Seq == 0:
		return nil
	case w.Deleted:
		result.Seq = 0
		if err := p.flush(ctx); err != nil { // numbers follow the order of the changes
			return err
		}
		return p.x.remove(ctx, p.tx, w.Space, map[string]int64{w.Key: id})
	}
	r, err := prepareRecord(w.Record)
	if err != nil {
		result.Err = err
		return nil
	}
	dimension, known := p.dimensions[w.Space]
	if !known {
		if dimension, err = p.x.dimension(ctx, p.tx.Query, w.Space); err != nil {
			return err
		}
	}
	if dimension == 0 {
		dimension = len(r.item.Embedding)
	}
	if p.dimensions[w.Space] = dimension; dimension != len(r.item.Embedding) {
		result.Err = wrongDimension(w.Space, len(r.item.Embedding), dimension)
		return nil
	}
	if w.Space != p.collection {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	p.collection, p.rows, p.at = w.Space, append(p.rows, r), append(p.at, i)
	return nil
}

// flush writes the rows.
func (p *putCall) flush(ctx context.Context) error {
	if len(p.rows) == 0 {
		return nil
	}
	if _, err := p.x.write(ctx, p.tx, p.collection, p.rows); err != nil {
		return err
	}
	for n, r := range p.rows {
		p.results[p.at[n]].Seq = r.seq
	}
	p.rows, p.at = nil, nil
	return nil
}

func prepareRecord(r store.Record) (*row, error) {
	item, err := fromRecord(r)
	if err != nil {
		return nil, err
	}
	rows, err := prepare(r.Space, []store.VectorItem{item})
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

func fromRecord(r store.Record) (store.VectorItem, error) {
	var body store.VectorBody
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return store.VectorItem{}, tea.Errorf(tea.ValidationError, "the record of vector %q: %w", r.Key, err)
	}
	item := store.VectorItem{ID: r.Key, Text: body.Text, Embedding: body.Embedding}
	if body.Metadata != nil {
		decoded, err := value.Decode(body.Metadata)
		object, ok := decoded.(map[string]any)
		if err != nil || !ok {
			return store.VectorItem{}, tea.Errorf(tea.ValidationError, "the metadata of vector %q is not an object", r.Key)
		}
		item.Metadata = object
	}
	return item, nil
}

// Failed handles the error of the transaction.
func (x *Index) Failed(collections []string, err error) {
	for _, collection := range collections {
		_ = x.markStale(collection, err)
	}
}

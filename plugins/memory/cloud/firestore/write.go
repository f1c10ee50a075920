package firestore

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"time"

	jsonvalue "github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// A part of a batch that is not atomic has at most so many writes and bytes. The bytes are few because a commit
	// contains documents twice, as fields and as text.
	partWrites         = 1000
	partNumberedWrites = 300
	partSize           = 1 << 20
	// partBytes is the size of a part of a large value.
	partBytes = 900_000
	// uploadBytes bounds the parts of values that are sent together.
	uploadBytes = 3 << 20
	// entryBytes bounds the size of an entry without its value, metadata and names.
	entryBytes = 1 << 10
	// maxNumber bounds the IDs of entries, so that a float64 represents them exactly.
	maxNumber = 1 << 53
)

// Write executes a batch: it reads what it replaces and sends one commit.
func (d *db) Write(ctx context.Context, b *store.Batch) error {
	if len(b.Writes) == 0 {
		_, err := d.number(ctx, nil, nil) // creates the document of the feeds
		return err
	}
	for rest := b.Writes; len(rest) > 0; {
		n := len(rest)
		if !b.Atomic {
			n = partOf(b, rest)
		}
		if err := d.write(ctx, b, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// partOf returns how many of the remaining writes are done together.
func partOf(b *store.Batch, rest []*store.RowWrite) (n int) {
	most, size := partWrites, 0
	if b.Numbered {
		most = partNumberedWrites
	}
	for n < min(len(rest), most) && (n == 0 || size+len(rest[n].Body) <= partSize) {
		size += len(rest[n].Body)
		n++
	}
	return n
}

// writing is a set of writes of a batch that are done together.
type writing struct {
	d      *db
	batch  *store.Batch
	writes []*store.RowWrite
	names  []string // of the documents
	large  map[string]*upload

	// The state of an attempt.
	found map[string]document
	state feeds
	heads map[string]*setting // of vector collections
	attempt[[]store.RowResult]
}

func (d *db) write(ctx context.Context, b *store.Batch, writes []*store.RowWrite) error {
	w := &writing{d: d, batch: b, writes: writes, names: make([]string, len(writes))}
	var read, fieldPaths []string
	if b.Numbered {
		read, fieldPaths = append(read, d.stateName()), append(fieldPaths, changeFields...)
	}
	for i, one := range writes {
		w.names[i] = d.recordDocument(one.RecordName)
		if read = append(read, d.withHead(w.names[i])...); b.Numbered {
			read = append(read, d.changeName(w.names[i]))
		}
		if i == 0 || one.Feed != writes[i-1].Feed {
			fieldPaths = append(fieldPaths, forWrites[one.Feed]...)
		}
	}
	if err := w.upload(ctx); err != nil {
		return err
	}
	results, err := change(ctx, d, compact(fieldPaths), compact(read), w.plan)
	if err != nil {
		return err
	}
	for i, one := range writes {
		one.Result = results[i]
	}
	return nil
}

// plan returns the writes of an attempt.
func (w *writing) plan(found map[string]document) (attempt[[]store.RowResult], error) {
	before := found[w.d.stateName()]
	w.found, w.state, w.heads = found, toFeeds(before), map[string]*setting{}
	w.attempt = attempt[[]store.RowResult]{numbered: w.batch.Numbered, result: make([]store.RowResult, len(w.writes))}
	refused, changed := false, false
	for i := range w.writes {
		all := w.row(i)
		r := w.result[i]
		refused = refused || r.Unmet || r.Dimension != 0 || r.Err != nil
		for _, one := range all {
			changed = changed || one.Verify == ""
		}
		w.add(all...)
	}
	if !changed || refused && w.batch.Atomic {
		w.attempt.writes = nil
		return w.attempt, nil
	}
	for name, s := range w.heads { // orders concurrent writes of a collection
		w.add(s.write(name, found[name].UpdateTime))
	}
	if w.batch.Numbered {
		w.add(w.d.writeFeeds(w.state, before.UpdateTime))
	}
	return w.attempt, nil
}

func (w *writing) add(writes ...write) { w.attempt.writes = append(w.attempt.writes, writes...) }

// row sets the result of write i and returns the changes of documents.
func (w *writing) row(i int) (all []write) {
	one, name, r := w.writes[i], w.names[i], &w.result[i]
	before, exists := existing(w.found, name, one.Feed)
	old, seq := toRow(one.Feed, one.Space, before), int64(0)
	if exists {
		r.Live = old.Expires == 0 || old.Expires > w.batch.Now
		r.Version = old.Version
		if n := toChangeNumber(w.found, w.d.changeName(name), one.Feed); w.batch.Numbered {
			if r.Seq, seq = n.seq, n.seq; !n.current(before) {
				seq = -2 // matches no condition
			}
		}
	}
	r.Unmet = !one.If.Met(exists, seq, old.Version)
	r.Same = one.Deduplicate && r.Live && one.Expires == 0 && old.Expires == 0 && old.Hash == one.Hash && old.Metadata == one.Metadata
	switch {
	case r.Unmet || r.Same:
		return nil
	case one.Deleted && !exists && one.Feed == store.DocumentFeed:
		return []write{{Verify: name, CurrentDocument: absent()}}
	case one.Deleted && !exists:
		return nil
	case one.Feed == store.EntryFeed:
		all = w.entry(one, name, old, before, r.Live)
	case one.Feed == store.VectorFeed:
		all = w.item(one, name, exists, r)
	default:
		all = w.document(one, i, old, before, exists, r)
	}
	if len(all) > 0 && w.batch.Numbered {
		all = append(all, w.note(one, name, r))
	}
	return all
}

// note assigns a write its number.
func (w *writing) note(one *store.RowWrite, name string, r *store.RowResult) write {
	seq := w.state.next(one.Feed)
	if one.Deleted {
		r.Seq = 0
		return w.d.removalDocument(one.RecordName, name, seq)
	}
	r.Seq = seq
	further := map[string]value{}
	if one.Expires != 0 {
		further[expiresField] = timestamp(one.Expires)
	}
	return w.d.changeDocument(one.RecordName, name, seq, further)
}

// entry returns the changes that store or remove an entry.
func (w *writing) entry(one *store.RowWrite, name string, old store.Row, before document, live bool) []write {
	if one.Deleted {
		return removal(before)
	}
	id, created, updated := rand.Int64N(maxNumber)+1, one.Created, one.Updated //nolint:gosec // not a secret
	if live {
		id = old.ID
	}
	switch {
	case created != 0:
	case live:
		created = old.Created
	default:
		created = w.batch.Now
	}
	if updated == 0 {
		updated = w.batch.Now
	}
	f := map[string]value{
		"id": integer(id), "namespace": text(one.Space), "key": text(one.Key), "content_hash": text(one.Hash), "size": integer(one.Size),
		"created_at": timestamp(created), "updated_at": timestamp(updated), "part": boolean(false),
	}
	if one.Metadata != "" {
		f[metadataField] = text(one.Metadata)
	}
	if one.Expires != 0 {
		f["expires_at"] = timestamp(one.Expires)
	}
	all := []write{{Update: &document{Name: name, Fields: f}, CurrentDocument: unchanged(before.UpdateTime)}}
	if large := w.large[name]; large == nil {
		f[valueField] = text(string(one.Body))
	} else {
		f[contentField], f[partsField] = text(large.content), integer(int64(large.parts))
		for _, part := range partsOf(*all[0].Update) { // these stay
			all = append(all, write{Update: &document{Name: part}, UpdateMask: &mask{[]string{uploadedField}}, CurrentDocument: present()})
		}
	}
	return append(all, removal(before)[1:]...)
}

// removal returns the removal of an entry and its parts, on condition that it has not changed.
func removal(one document) []write {
	all := []write{{Delete: one.Name, CurrentDocument: unchanged(one.UpdateTime)}}
	for _, name := range partsOf(one) {
		all = append(all, write{Delete: name})
	}
	return all
}

// item returns the changes that store or remove a vector. The document of its collection changes too.
func (w *writing) item(one *store.RowWrite, name string, exists bool, r *store.RowResult) []write {
	head := collectionOfItem(name)
	s := w.heads[head]
	if s == nil {
		s = &setting{name: one.Space, dimension: len(one.Body) / 4, born: rand.Int64() + 1} //nolint:gosec // not a secret
		if d, ok := w.found[head]; ok {
			*s = toSetting(d)
		}
	}
	if !one.Deleted && len(one.Body) != 4*s.dimension {
		r.Dimension = s.dimension
		return nil
	}
	f := map[string]value{seqField: integer(s.last + 1), bornField: integer(s.born)}
	if one.Deleted {
		f[deletedField] = boolean(true)
	} else {
		f["id"], f["text"], f["embedding"] = text(one.Key), text(one.Text), value{Bytes: one.Body}
		if one.Metadata != "" {
			f[metadataField] = text(one.Metadata)
		}
	}
	if r.Err = checkSize(fmt.Sprintf("item %q", one.Key), f); r.Err != nil {
		return nil
	}
	w.heads[head] = s
	s.last++
	switch {
	case one.Deleted:
		s.count--
	case !exists:
		s.count++
	}
	return []write{{Update: &document{Name: name, Fields: f}}}
}

// document returns the changes that store or remove document i of its commit. Its members become fields, for other
// programs and for conditions.
func (w *writing) document(one *store.RowWrite, i int, old store.Row, before document, exists bool, r *store.RowResult) []write {
	condition := unchanged(before.UpdateTime)
	if one.Deleted {
		return []write{{Delete: before.Name, CurrentDocument: condition}}
	}
	version := one.Version
	if version == 0 {
		version = 1
		if exists {
			version = old.Version + 1
		}
	}
	f, err := toFields(one.Body)
	if r.Err = err; err != nil {
		return nil
	}
	f[bodyField], f[versionField], f[placeField] = text(string(one.Body)), integer(version), integer(int64(i))
	if _, long := whole.cut(one.Key); long {
		f[idField] = text(one.Key)
	}
	if r.Err = checkSize(one.Space+" "+one.Key, f); r.Err != nil {
		return nil
	}
	return []write{{Update: &document{Name: w.names[i], Fields: f}, CurrentDocument: condition}}
}

// upload is a large value that was sent before its entry.
type upload struct {
	content string
	parts   int
}

// upload sends the values that do not fit into their entries.
func (w *writing) upload(ctx context.Context) error {
	w.large = map[string]*upload{}
	var writes []write
	size := 0
	for i, one := range w.writes {
		if one.Feed != store.EntryFeed || len(one.Body)+len(one.Metadata)+len(one.Space)+len(one.Key)+entryBytes <= maxDocument {
			continue
		}
		u := &upload{content: crand.Text()}
		w.large[w.names[i]] = u
		for rest := string(one.Body); rest != ""; u.parts++ {
			n := len(rest)
			if n > partBytes {
				n = jsonvalue.WholeRunes(rest[:partBytes])
			}
			if size += n; size > uploadBytes {
				if err := w.d.commit(ctx, writes); err != nil {
					return err
				}
				writes, size = nil, n
			}
			writes = append(writes, write{Update: &document{Name: partName(w.names[i], u.content, int64(u.parts)), Fields: map[string]value{
				"data": text(rest[:n]), "part": boolean(true), uploadedField: timestamp(time.Now().UnixMicro()),
			}}})
			rest = rest[n:]
		}
	}
	if len(writes) == 0 {
		return nil
	}
	return w.d.commit(ctx, writes)
}

func partName(name, content string, i int64) string {
	return fmt.Sprintf("%s%s%s-%05d", name, partMark, content, i)
}

package firestore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/replica"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// records are the documents of a database as records. See number.
type records struct {
	d *db
	m *Memory
}

var _ replica.Tables = (*records)(nil)

// Identity identifies the contents.
func (r *records) Identity(ctx context.Context) (string, error) {
	for {
		found, err := r.d.get(ctx, []string{identityField}, r.d.stateName())
		if err != nil {
			return "", err
		}
		if d, ok := found[r.d.stateName()]; ok {
			return d.Fields[identityField].text(), nil
		}
		if err := r.d.catchUp(ctx); err != nil {
			return "", err
		}
	}
}

// Bounds returns the numbers between which all deletions are known.
func (r *records) Bounds(ctx context.Context, feed store.Feed) (forgotten, last int64, err error) {
	found, err := r.d.get(ctx, changeFields, r.d.stateName())
	f := found[r.d.stateName()].Fields
	return f[forgottenPrefix+string(feed)].int(), f[lastField+string(feed)].int(), err
}

// forget removes the tombstones that are older than replica.KeptDeletions.
func (d *db) forget(ctx context.Context) error {
	before := timestamp(d.now().Add(-replica.KeptDeletions * time.Second).UnixMicro())
	old := structured{From: []from{{d.prefix + changesName}}, Where: &filterOf{FieldFilter: &fieldFilter{field{goneAtField}, "LESS_THAN", before}}, Limit: batch}
	for {
		p, err := d.query(ctx, "", old, "")
		if err != nil || len(p.documents) == 0 {
			return err
		}
		_, err = change(ctx, d, changeFields, []string{d.stateName()}, func(found map[string]document) (a attempt[struct{}], err error) {
			state := toFeeds(found[d.stateName()])
			for _, n := range p.documents {
				r, _ := d.notedName(n)
				forgotten := forgottenPrefix + string(r.Feed)
				state.fields[forgotten] = integer(max(state.fields[forgotten].int(), n.Fields[string(r.Feed)].int()))
			}
			a.writes = []write{d.writeFeeds(state, found[d.stateName()].UpdateTime)}
			return a, nil
		})
		if err != nil {
			return err
		}
		if err := d.remove(ctx, p.documents); err != nil {
			return err
		}
	}
}

// maxRecords is the size of the records of a page.
const maxRecords = 4 << 20

// Page returns the first records of a feed after a number.
func (r *records) Page(ctx context.Context, query store.ChangeQuery) (found []store.Record, more bool, err error) {
	var compared []store.Feed
	if query.After == 0 && !query.FromStart {
		compared = []store.Feed{query.Feed}
	}
	if err := r.d.catchUp(ctx, compared...); err != nil {
		return nil, false, err
	}
	limit, size := min(query.Limit+1, pageDocuments), int64(maxRecords)
	if query.MaxBytes > 0 {
		size = min(size, query.MaxBytes)
	}
	for after := query.After; ; {
		p, err := r.d.query(ctx, "", r.d.notesAfter(query.Feed, after, limit), "")
		if err != nil || len(p.documents) == 0 {
			return nil, false, err
		}
		found, more, err := r.read(ctx, query.Feed, p.documents, size)
		if err != nil || len(found) > 0 || !p.more {
			return found, more || p.more, err
		}
		after = p.documents[len(p.documents)-1].Fields[string(query.Feed)].int()
	}
}

// reading bounds the documents that are read at once: the first ones, and later as many
// as those before let expect in a part of a page.
const (
	firstReading = 32
	mostReading  = 250
	readingBytes = 2 << 20
)

// read returns the records with these numbers, until they have a size. One that does not
// exist, since it has expired or since its removal has no number yet, is left out.
func (r *records) read(ctx context.Context, feed store.Feed, notes []document, size int64) (all []store.Record, more bool, err error) {
	bytes := int64(0)
	for n := firstReading; len(notes) > 0; {
		part := notes[:min(n, len(notes))]
		notes = notes[len(part):]
		var names []string
		for _, note := range part {
			if name, gone := r.d.notedName(note); !gone {
				names = append(names, r.withHead(r.d.recordDocument(name))...)
			}
		}
		found := map[string]document{}
		if len(names) > 0 {
			if found, err = r.d.get(ctx, nil, slices.Compact(slices.Sorted(slices.Values(names)))...); err != nil {
				return nil, false, err
			}
		}
		before := bytes
		for i, note := range part {
			name, gone := r.d.notedName(note)
			one := store.Record{RecordName: name, Deleted: true, Updated: clock.FromMicro(note.Fields[goneAtField].micro())}
			if !gone {
				d, ok := existing(found, r.d.recordDocument(name), feed)
				if !ok {
					continue
				}
				if one, err = r.toRecord(ctx, name, d); err != nil {
					return nil, false, err
				}
			}
			one.Seq = note.Fields[string(feed)].int()
			if bytes += int64(len(one.Body)); bytes > size && len(all) > 0 {
				return all, true, nil
			}
			if all = append(all, one); i == len(part)-1 {
				n = int(min(mostReading, max(1, readingBytes*int64(len(part))/max(1, bytes-before))))
			}
		}
	}
	return all, false, nil
}

// withHead returns the name of a record's document, and that of an item's collection.
func (r *records) withHead(name string) []string {
	if r.d.feedOf(name) == store.VectorFeed {
		return []string{name, collectionOfItem(name)}
	}
	return []string{name}
}

// toRecord returns the record of a document, without its number.
func (r *records) toRecord(ctx context.Context, name store.RecordName, d document) (store.Record, error) {
	switch name.Feed {
	case store.EntryFeed:
		e := toEntry(d)
		if e.hasParts {
			if err := r.addParts(ctx, e); err != nil {
				return store.Record{}, err
			}
		}
		if err := e.complete(); err != nil || e.Metadata != nil && !json.Valid(e.Metadata) {
			r.d.logger.Error("an entry is damaged", "key", e.Key)
			e.Damaged, e.Value = true, nil
		}
		return longterm.ToRecord(e.Memory, 0)
	case store.VectorFeed:
		f := d.Fields
		body := store.VectorBody{Text: f["text"].text()}
		if metadata, ok := f[metadataField]; ok {
			body.Metadata = json.RawMessage(metadata.text())
		}
		raw := f["embedding"].Bytes
		body.Embedding = vectors.Decode(raw[:len(raw)/4*4])
		one := vectors.ToRecord(name.Space, name.Key, 0, body)
		one.Damaged = one.Damaged || len(raw)%4 != 0
		return one, nil
	}
	return documents.ToRecord(toDocument(name.Space, d)), nil
}

// addParts reads the parts of an entry's value.
func (r *records) addParts(ctx context.Context, e *entry) error {
	head := e.documents[0]
	for i := range head.Fields["parts"].int() {
		name := partName(head.Name, head.Fields["content"].text(), i)
		found, err := r.d.get(ctx, nil, name)
		if err != nil {
			return err
		}
		if part, ok := found[name]; ok { // the hash shows whether all are there
			e.add(part)
		}
	}
	return nil
}

// Named returns the records with these names. Those that have changed since they got
// their numbers get others.
func (r *records) Named(ctx context.Context, feed store.Feed, names []store.RecordName) (all []store.Record, err error) {
	for part := range slices.Chunk(names, numberBatch) {
		var records, documents []string
		for _, name := range part {
			record := r.d.recordDocument(name)
			records = append(records, record)
			documents = append(append(documents, r.withHead(record)...), r.d.changeName(record))
		}
		documents = slices.Compact(slices.Sorted(slices.Values(documents)))
		found, err := r.d.get(ctx, changeFields, documents...)
		if err != nil {
			return nil, err
		}
		var stale []string
		for _, record := range records {
			if d, ok := existing(found, record, feed); ok && !toNoted(found, r.d.changeName(record), feed).current(d) {
				stale = append(stale, record)
			}
		}
		if len(stale) > 0 && r.d.readOnly == "" {
			if err := r.d.number(ctx, stale, nil); err != nil {
				return nil, err
			}
			if found, err = r.d.get(ctx, changeFields, documents...); err != nil {
				return nil, err
			}
		}
		var notes []document
		for _, record := range records {
			if n, ok := found[r.d.changeName(record)]; ok {
				notes = append(notes, n)
			}
		}
		some, more, err := r.read(ctx, feed, notes, 1<<62)
		if err != nil || more {
			return nil, cmp.Or(err, error(tea.Errorf(tea.InternalError, "a part of the records was not read")))
		}
		all = append(all, some...)
	}
	return all, nil
}

const (
	// putRecords and putBytes bound the records of a commit.
	putRecords = 300
	putBytes   = 1 << 20 // a commit has documents twice, as fields and as text
)

// Put does the writes in the order of their feeds. They are atomic together if they have
// no more than putBytes and putRecords, and otherwise in parts.
func (r *records) Put(ctx context.Context, w *replica.Writes) error {
	if err := r.d.writable(); err != nil {
		return err
	}
	all := slices.Concat(w.Entries, w.Vectors, w.Documents)
	for len(all) > 0 {
		n, size := 0, 0
		for n < len(all) && n < putRecords && (n == 0 || size <= putBytes) {
			size += len(all[n].Body)
			n++
		}
		if n > 1 && size > putBytes {
			n--
		}
		if err := r.put(ctx, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// putFields are what a Put reads.
var putFields = slices.Concat(changeFields, stateFields, stateOfItems, []string{versionField})

// put does writes atomically.
func (r *records) put(ctx context.Context, writes []*replica.Write) error {
	p := &putting{d: r.d, m: r.m, writes: writes, names: make([]string, len(writes))}
	var stored []string
	var entries []store.Entry
	var contents []longterm.Canonical
	read := []string{r.d.stateName()}
	for i, w := range writes {
		p.names[i] = r.d.recordDocument(w.RecordName)
		read = append(append(read, r.withHead(p.names[i])...), r.d.changeName(p.names[i]))
		if w.Feed == store.EntryFeed && !w.Deleted {
			if len(w.Entry.Metadata) > maxMetadata {
				w.Result.Err = metadataTooLarge(w.Key, len(w.Entry.Metadata))
				continue
			}
			stored, entries, contents = append(stored, p.names[i]), append(entries, store.Entry{Namespace: w.Space, Key: w.Key}), append(contents, w.Entry)
		}
	}
	var err error
	if p.large, err = r.m.upload(ctx, stored, entries, contents); err != nil {
		return err
	}
	read = slices.Compact(slices.Sorted(slices.Values(read)))
	results, err := change(ctx, r.d, putFields, read, p.plan)
	if err != nil {
		return err
	}
	for i, w := range writes {
		w.Result = results[i]
	}
	return nil
}

// putting is a Put.
type putting struct {
	d      *db
	m      *Memory
	writes []*replica.Write
	names  []string // of the documents
	large  map[string]*upload

	// Those of a try.
	found map[string]document
	state feeds
	heads map[string]*setting
	attempt[[]store.PutResult]
}

// plan returns the writes of a try.
func (p *putting) plan(found map[string]document) (attempt[[]store.PutResult], error) {
	before := found[p.d.stateName()]
	p.found, p.state, p.heads = found, toFeeds(before), map[string]*setting{}
	p.attempt = attempt[[]store.PutResult]{numbered: true, result: make([]store.PutResult, len(p.writes))}
	for i, w := range p.writes {
		r := &p.result[i]
		if r.Err = w.Result.Err; r.Err != nil {
			continue
		}
		have := int64(0)
		d, exists := existing(found, p.names[i], w.Feed)
		if exists {
			n := toNoted(found, p.d.changeName(p.names[i]), w.Feed)
			if have = n.seq; !n.current(d) {
				have = -2 // none that a condition has
			}
		}
		if r.Seq = max(have, 0); w.If != store.AnySeq && w.If != have {
			r.Conflict = true
			continue
		}
		p.put(i, d, exists)
	}
	if len(p.attempt.writes) == 0 {
		return p.attempt, nil
	}
	for name, s := range p.heads {
		p.add(s.write(name, found[name].UpdateTime))
	}
	p.add(p.d.writeFeeds(p.state, before.UpdateTime))
	return p.attempt, nil
}

func (p *putting) add(writes ...write) { p.attempt.writes = append(p.attempt.writes, writes...) }

// put adds the changes of the i-th write.
func (p *putting) put(i int, before document, exists bool) {
	w, name, r := p.writes[i], p.names[i], &p.result[i]
	if w.Deleted && !exists {
		return
	}
	var changes []write
	switch w.Feed {
	case store.EntryFeed:
		changes = p.entry(w, name, before)
	case store.VectorFeed:
		changes, r.Err = p.item(w, name, exists)
	default:
		c := documents.Written{Name: documents.Name{Kind: w.Space, ID: w.Key}, Version: 1}
		if exists {
			c.Before = max(1, before.Fields[versionField].int())
			c.Version = c.Before + 1
		}
		if !w.Deleted {
			c.Body = w.Body
		}
		one, err := (&Documents{d: p.d}).write(c, i, p.found)
		changes, r.Err = []write{one}, err
	}
	if r.Err != nil {
		return
	}
	p.add(changes...)
	seq := p.state.next(w.Feed)
	if w.Deleted {
		r.Seq = 0
		p.add(p.d.noteGone(w.RecordName, name, seq))
		return
	}
	r.Seq = seq
	further := map[string]value{}
	if w.Feed == store.EntryFeed && w.Entry.ExpiresAt != 0 {
		further[expiresField] = timestamp(w.Entry.ExpiresAt)
	}
	p.add(p.d.noteOf(w.RecordName, name, seq, further))
}

func (p *putting) entry(w *replica.Write, name string, before document) []write {
	if w.Deleted {
		return removal(before)
	}
	all := p.m.writes(name, store.Entry{Namespace: w.Space, Key: w.Key}, w.Entry, p.large[name], before, before.Name == "", p.d.now().UnixMicro())
	for field, t := range map[string]time.Time{"created_at": w.Created, "updated_at": w.Updated} {
		if !t.IsZero() {
			all[0].Update.Fields[field] = timestamp(t.UnixMicro())
		}
	}
	return all
}

func (p *putting) item(w *replica.Write, name string, exists bool) ([]write, error) {
	head := collectionOfItem(name)
	s := p.heads[head]
	if s == nil {
		s = &setting{name: w.Space, dimension: len(w.Item.Embedding), born: rand.Int64() + 1} //nolint:gosec // not a secret
		if d, ok := p.found[head]; ok {
			*s = toSetting(d)
		}
	}
	if !w.Deleted && len(w.Item.Embedding) != s.dimension {
		return nil, vectors.WrongDimension(w.Space, len(w.Item.Embedding), s.dimension)
	}
	f := map[string]value{seqField: integer(s.last + 1), bornField: integer(s.born)}
	if w.Deleted {
		f[goneField] = boolean(true)
	} else {
		f["id"], f["text"], f["embedding"] = text(w.Key), text(w.Item.Text), value{Bytes: vectors.Encode(w.Item.Embedding)}
		if w.Metadata != "" {
			f[metadataField] = text(w.Metadata)
		}
	}
	if size := sizeOf(f); size > maxDocument {
		return nil, tooLarge(fmt.Sprintf("item %q", w.Key), size)
	}
	p.heads[head] = s
	s.last++
	switch {
	case w.Deleted:
		s.count--
	case !exists:
		s.count++
	}
	return []write{{Update: &document{Name: name, Fields: f}}}, nil
}

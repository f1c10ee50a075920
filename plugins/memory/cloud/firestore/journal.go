package firestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// The records of a feed need increasing numbers. Writers do not assign them, because they would all wait for the
// document with the counter. A writer records the names of the changed documents in its document of tea-ops, which it
// writes anyway. A reader of a feed assigns the numbers, in documents of tea-changes.

const (
	// changesName is the collection with a document for each numbered record, and stateID its document with the state
	// of the feeds.
	changesName = "tea-changes"
	stateID     = "state"

	// The fields of a document of tea-ops: the names of the documents that were written or, after removedMark, removed;
	// the collection of vectors that was dropped; and whether they are not numbered yet.
	changedField    = "changed"
	droppedField    = "dropped"
	unnumberedField = "unread"
	removedMark     = '-'

	// The fields of a document of tea-changes, besides the number in the field with the name of the feed. ofField is
	// the time of the numbered change, "" if it is the time of the document itself.
	spaceField     = "space"
	recordField    = "key"
	ofField        = "of"
	deletedAtField = "gone_at"
	expiresField   = "expires_at"
	// inField is the name of the document of an item's collection.
	inField = "collection"

	identityField   = "identity"
	lastField       = "last_"
	forgottenPrefix = "forgotten_"

	// journaled is how long a document of tea-ops is kept for readers. A reader that comes later compares all records.
	journaled = 7 * 24 * time.Hour
	// maxJournal bounds the names in a document of tea-ops.
	maxJournal = 900_000
	// numberBatch is the number of records that are numbered together.
	numberBatch = 200
)

// changeFields are the fields of records, changes and the state that numbering reads.
var changeFields = slices.Concat(
	[]string{"namespace", "id", "name", bornField, deletedField, idField, spaceField, recordField, ofField, deletedAtField, expiresField, inField, identityField},
	feedFields(""), feedFields(lastField), feedFields(forgottenPrefix),
)

func feedFields(prefix string) (all []string) {
	for _, feed := range store.Feeds() {
		all = append(all, prefix+string(feed))
	}
	return all
}

// marks returns the documents of tea-ops of a commit: one with the number of the attempt, and more if there are too
// many names for one.
func (d *db) marks(op string, try int, writes []write, dropped string) (all []write) {
	var names bytes.Buffer
	add := func() {
		name := op
		if len(all) > 0 {
			name += "-" + strconv.Itoa(len(all))
		}
		f := map[string]value{tryField: integer(int64(try)), opExpiry: timestamp(time.Now().Add(keep).UnixMicro())}
		if names.Len() > 0 {
			f[changedField] = value{Bytes: bytes.Clone(names.Bytes())}
		}
		if len(all) == 0 && dropped != "" {
			f[droppedField] = text(dropped)
		}
		if len(f) > 2 {
			f[unnumberedField], f[opExpiry] = boolean(true), timestamp(time.Now().Add(journaled).UnixMicro())
		}
		all = append(all, write{Update: &document{Name: name, Fields: f}, CurrentDocument: absent()})
		names.Reset()
	}
	for _, w := range writes {
		name, removed := w.Delete, w.Delete != ""
		if w.Update != nil && w.UpdateMask == nil {
			name = w.Update.Name
		}
		feed, _ := d.feedOf(name)
		if feed == "" {
			continue
		}
		removed = removed || feed == store.VectorFeed && isDeleted(*w.Update)
		if names.Len()+len(name) > maxJournal {
			add()
		}
		if removed {
			names.WriteByte(removedMark)
		}
		names.WriteString(strings.TrimPrefix(name, d.root+"/"))
		names.WriteByte(0)
	}
	if len(all) == 0 || names.Len() > 0 {
		add()
	}
	return all
}

func (d *db) changeName(record string) string {
	return d.name(changesName, hexOf(strings.TrimPrefix(record, d.root+"/")))
}

func (d *db) stateName() string { return d.name(changesName, stateID) }

// feeds is the document of the feeds, as a commit changes it.
type feeds map[string]value

func toFeeds(d document) feeds {
	f := feeds{identityField: text(rand.Text())}
	maps.Copy(f, d.Fields)
	return f
}

func (f feeds) next(feed store.Feed) int64 {
	n := f[lastField+string(feed)].int() + 1
	f[lastField+string(feed)] = integer(n)
	return n
}

func (d *db) writeFeeds(f feeds, updateTime string) write {
	return write{Update: &document{Name: d.stateName(), Fields: f}, CurrentDocument: unchanged(updateTime)}
}

// changeNumber is the content of a document of tea-changes.
type changeNumber struct {
	seq    int64
	exists bool
	of     string // time of the change
}

func toChangeNumber(found map[string]document, name string, feed store.Feed) changeNumber {
	d := found[name]
	n := changeNumber{seq: d.Fields[string(feed)].int(), of: d.Fields[ofField].text(), exists: d.Fields[string(feed)].Integer != nil && d.Fields[deletedAtField].Timestamp == ""}
	if n.of == "" {
		n.of = d.UpdateTime
	}
	return n
}

// current reports whether the number belongs to the record's last change.
func (n changeNumber) current(record document) bool { return n.exists && n.of == record.UpdateTime }

// changeDocument returns the document with the number of a record.
func (d *db) changeDocument(r store.RecordName, name string, seq int64, further map[string]value) write {
	f := map[string]value{string(r.Feed): integer(seq), spaceField: text(r.Space), recordField: text(r.Key)}
	if r.Feed == store.VectorFeed {
		f[inField] = text(strings.TrimPrefix(collectionOfItem(name), d.root+"/"))
	}
	maps.Copy(f, further)
	return write{Update: &document{Name: d.changeName(name), Fields: f}}
}

func (d *db) removalDocument(r store.RecordName, name string, seq int64) write {
	return d.changeDocument(r, name, seq, map[string]value{deletedAtField: timestamp(d.now().UnixMicro())})
}

// recordOf returns the name of the record of a document of tea-changes.
func recordOf(note document) (r store.RecordName, deleted bool) {
	for _, feed := range store.Feeds() {
		if note.Fields[string(feed)].Integer != nil {
			r = store.RecordName{Feed: feed, Space: note.Fields[spaceField].text(), Key: note.Fields[recordField].text()}
		}
	}
	return r, note.Fields[deletedAtField].Timestamp != ""
}

// number numbers records that have changed since they were last numbered, and returns the documents with the numbers of
// all. Records in removed were removed; other records that do not exist have expired. also are writes of the same
// commit.
func (d *db) number(ctx context.Context, names []string, removed map[string]bool, also ...write) (notes []document, err error) {
	names = compact(slices.Clone(names))
	read := []string{d.stateName()}
	for _, name := range names {
		read = append(append(read, d.withHead(name)...), d.changeName(name))
	}
	return change(ctx, d, changeFields, compact(read), func(found map[string]document) (a attempt[[]document], err error) {
		before := found[d.stateName()]
		state := toFeeds(before)
		for _, name := range names {
			feed, space := d.feedOf(name)
			note := found[d.changeName(name)]
			n := toChangeNumber(found, note.Name, feed)
			record, exists := existing(found, name, feed)
			var w write
			switch {
			case exists && !n.current(record):
				further := map[string]value{ofField: text(record.UpdateTime)}
				if expires, ok := record.Fields[expiresField]; ok && feed == store.EntryFeed {
					further[expiresField] = expires
				}
				w = d.changeDocument(toRow(feed, space, record).RecordName, name, state.next(feed), further)
			case !exists && n.exists && removed[name]:
				r, _ := recordOf(note)
				w = d.removalDocument(r, name, state.next(feed))
			}
			if w.Update != nil {
				a.writes, note = append(a.writes, w), *w.Update
			}
			if note.Name != "" {
				a.result = append(a.result, note)
			}
		}
		if len(a.writes) > 0 || before.Name == "" {
			a.writes = append(a.writes, d.writeFeeds(state, before.UpdateTime))
		}
		a.writes = append(a.writes, also...)
		return a, nil
	})
}

type numbering struct {
	d       *db
	names   []string
	removed map[string]bool
	err     error
}

// add adds a record and reports whether more can be added.
func (n *numbering) add(ctx context.Context, name string, removed bool) bool {
	if n.removed == nil {
		n.removed = map[string]bool{}
	}
	n.names, n.removed[name] = append(n.names, name), n.removed[name] || removed
	if len(n.names) < numberBatch {
		return n.err == nil
	}
	return n.flush(ctx) == nil
}

// flush assigns the numbers of the added records. also are writes of the same commit.
func (n *numbering) flush(ctx context.Context, also ...write) error {
	if n.err == nil && len(n.names)+len(also) > 0 {
		_, n.err = n.d.number(ctx, n.names, n.removed, also...)
	}
	n.names, n.removed = nil, nil
	return n.err
}

// each adds the records among the results of a query.
func (n *numbering) each(ctx context.Context, parent string, q structured, name func(document) (name string, removed bool)) error {
	err := n.d.all(ctx, parent, q, func(one document) bool {
		name, removed := name(one)
		return name == "" || n.add(ctx, name, removed)
	})
	return errors.Join(err, n.flush(ctx))
}

// catchUp numbers all recorded changes. If changes may be missing from the journal, it compares all records with their
// numbers. It returns the previous document of the feeds.
func (d *db) catchUp(ctx context.Context, feeds ...store.Feed) (before document, err error) {
	if err := d.numbers(); err != nil {
		return before, err
	}
	found, now, err := d.getAt(ctx, changeFields, d.stateName())
	if err != nil {
		return before, err
	}
	before = found[d.stateName()]
	age := time.Duration(now-micros(before.UpdateTime)) * time.Microsecond // by the server's clock
	switch {
	case before.Name == "":
		if _, err := d.number(ctx, nil, nil); err != nil { // creates the document of the feeds
			return before, err
		}
	case age > journaled-24*time.Hour:
		feeds = store.Feeds()
	}
	for _, feed := range feeds {
		if err := d.compare(ctx, feed); err != nil {
			return before, fmt.Errorf("compare all records: %w", err)
		}
	}
	for more := true; more; {
		p, err := d.query(ctx, "", structured{From: []from{{d.prefix + opsName}}, Where: equal(unnumberedField, boolean(true)), Limit: numberBatch}, "")
		if err == nil {
			err = d.readJournal(ctx, p.documents)
		}
		if more = p.more; err != nil {
			return before, err
		}
	}
	if before.Name != "" && age > time.Hour { // keeps the age of the document the age of the last reading
		if err := d.commit(ctx, []write{d.writeFeeds(toFeeds(before), before.UpdateTime)}); err != nil && !conflicts(err) {
			return before, err
		}
	}
	return before, nil
}

// numbers reports whether this memory can assign numbers.
func (d *db) numbers() error {
	if d.readOnly == "" {
		return nil
	}
	return store.Unsupported(Name, store.Records, "remove settings.memory.read_only: reading the changes of a memory assigns numbers to them")
}

// readJournal numbers the changes in documents of tea-ops.
func (d *db) readJournal(ctx context.Context, ops []document) error {
	n := &numbering{d: d}
	var marks []write
	for _, op := range ops {
		for part := range strings.SplitSeq(string(op.Fields[changedField].Bytes), "\x00") {
			if path, deleted := strings.CutPrefix(part, string(removedMark)); path != "" {
				n.add(ctx, d.root+"/"+path, deleted)
			}
		}
		if dropped := op.Fields[droppedField].text(); dropped != "" {
			items := d.root + "/" + dropped + "/" + itemsName + "/"
			q := structured{From: []from{{d.prefix + changesName}}, Where: equal(inField, text(dropped)), Select: selected([]string{recordField, deletedAtField})}
			err := (&numbering{d: d}).each(ctx, "", q, func(note document) (string, bool) {
				if note.Fields[deletedAtField].Timestamp != "" {
					return "", false
				}
				return items + whole.id(note.Fields[recordField].text()), true
			})
			if err != nil {
				return err
			}
		}
		marks = append(marks, write{
			Update:     &document{Name: op.Name, Fields: map[string]value{opExpiry: timestamp(time.Now().Add(keep).UnixMicro())}},
			UpdateMask: &mask{[]string{opExpiry, unnumberedField, changedField, droppedField}},
		})
	}
	return n.flush(ctx, marks...)
}

// compare numbers all records of a feed that have no number, and those that no longer exist.
func (d *db) compare(ctx context.Context, feed store.Feed) error {
	type source struct{ parent, collection string }
	var sources []source
	if feed == store.VectorFeed {
		spaces, err := d.Spaces(ctx)
		if err != nil {
			return err
		}
		for _, s := range spaces {
			sources = append(sources, source{d.place(feed, s.Name).parent, itemsName})
		}
	} else {
		names, err := d.collections(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			if of, _ := d.feedOf(d.name(name, "a")); of == feed {
				sources = append(sources, source{"", d.prefix + name})
			}
		}
	}
	n := &numbering{d: d}
	for _, s := range sources {
		q := structured{From: []from{{s.collection}}, Select: selected([]string{nameField})}
		err := n.each(ctx, s.parent, q, func(record document) (string, bool) {
			if isPart(record.Name) && feed == store.EntryFeed {
				return "", false
			}
			return record.Name, false
		})
		if err != nil {
			return err
		}
	}
	for after, more := int64(0), true; more; {
		p, err := d.query(ctx, "", d.notesAfter(feed, after, numberBatch), "")
		if err != nil {
			return err
		}
		for _, note := range p.documents {
			after = note.Fields[string(feed)].int()
			_, expires := note.Fields[expiresField] // a missing record with an expiry has expired, by another device's clock
			if r, deleted := recordOf(note); !deleted && !expires {
				n.add(ctx, d.recordDocument(r), true)
			}
		}
		if more = p.more; n.flush(ctx) != nil {
			return n.err
		}
	}
	return nil
}

// notesAfter selects the first documents of a feed whose numbers are greater than after.
func (d *db) notesAfter(feed store.Feed, after int64, limit int) structured {
	return structured{
		From: []from{{d.prefix + changesName}}, OrderBy: []order{{field{string(feed)}}}, Limit: limit,
		Where: &filterOf{FieldFilter: &fieldFilter{field{string(feed)}, "GREATER_THAN", integer(after)}},
	}
}

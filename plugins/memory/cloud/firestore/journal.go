package firestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// A feed needs a number on each record that increases. A writer does not assign it:
// all writers would wait for the document that counts. It notes the names of the
// documents that it changes in its document of tea-ops, which it writes anyway. A
// reader of a feed assigns the numbers, in documents of tea-changes.

const (
	// changesName is the collection with a document for each record that has a number,
	// and stateID its document of the feeds.
	changesName = "tea-changes"
	stateID     = "state"

	// The fields of a document of tea-ops: the names of the documents that were written
	// or, behind a removedMark, removed; the collection of vectors that was dropped; and
	// whether they have no numbers yet.
	changedField = "changed"
	droppedField = "dropped"
	unreadField  = "unread"
	removedMark  = '-'

	// The fields of a document of tea-changes besides the number, which is in a field with
	// the name of the feed. ofField is the time of the record's change that has the number,
	// "" for that of the document itself.
	spaceField   = "space"
	recordField  = "key"
	ofField      = "of"
	goneAtField  = "gone_at"
	expiresField = "expires_at"
	// inField is the name of the document of an item's collection.
	inField = "collection"

	identityField   = "identity"
	lastField       = "last_"
	forgottenPrefix = "forgotten_"

	// journaled is how long a document of tea-ops is kept for a reader. A reader that comes
	// later compares all records.
	journaled = 7 * 24 * time.Hour
	// maxJournal is the size of the names in a document of tea-ops.
	maxJournal = 900_000
	// numberBatch is the number of records that get their numbers together.
	numberBatch = 200
)

// changeFields are what numbering reads of records, their changes and the state.
var changeFields = slices.Concat(
	[]string{"namespace", "id", "name", bornField, goneField, idField, spaceField, recordField, ofField, goneAtField, expiresField, inField, identityField},
	feedFields(""), feedFields(lastField), feedFields(forgottenPrefix),
)

func feedFields(prefix string) (all []string) {
	for _, feed := range store.Feeds() {
		all = append(all, prefix+string(feed))
	}
	return all
}

// marks are the documents of tea-ops of a commit: that with the number of the try, and
// further ones if there are too many names of records for it.
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
			f[unreadField], f[opExpiry] = boolean(true), timestamp(time.Now().Add(journaled).UnixMicro())
		}
		all = append(all, write{Update: &document{Name: name, Fields: f}, CurrentDocument: absent()})
		names.Reset()
	}
	for _, w := range writes {
		name, removed := w.Delete, w.Delete != ""
		if w.Update != nil && w.UpdateMask == nil {
			name = w.Update.Name
			removed = d.feedOf(name) == store.VectorFeed && isGone(*w.Update)
		}
		if d.feedOf(name) == "" {
			continue
		}
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

// feedOf returns the feed of the record that a document is, "" for another document.
func (d *db) feedOf(name string) store.Feed {
	path, ok := strings.CutPrefix(name, d.root+"/"+d.prefix)
	collection, id, _ := strings.Cut(path, "/")
	switch {
	case !ok:
		return ""
	case collection == entriesName:
		if !strings.Contains(id, partMark) {
			return store.EntryFeed
		}
		return ""
	case collection == vectorsName:
		if strings.Contains(id, "/"+itemsName+"/") {
			return store.VectorFeed
		}
		return ""
	case strings.HasPrefix(collection, otherKinds):
		return store.DocumentFeed
	}
	for _, known := range kinds {
		if collection == known {
			return store.DocumentFeed
		}
	}
	return ""
}

// collectionOfItem returns the name of the document of an item's collection.
func collectionOfItem(name string) string {
	return name[:strings.LastIndex(name, "/"+itemsName+"/")]
}

func (d *db) changeName(record string) string {
	return d.name(changesName, hexOf(strings.TrimPrefix(record, d.root+"/")))
}

func (d *db) stateName() string { return d.name(changesName, stateID) }

// feeds is the document of the feeds, as a commit changes it.
type feeds struct{ fields map[string]value }

func toFeeds(d document) feeds {
	f := feeds{map[string]value{identityField: text(rand.Text())}}
	for name, v := range d.Fields {
		f.fields[name] = v
	}
	return f
}

func (f feeds) last(feed store.Feed) int64 { return f.fields[lastField+string(feed)].int() }

func (f feeds) next(feed store.Feed) int64 {
	n := f.last(feed) + 1
	f.fields[lastField+string(feed)] = integer(n)
	return n
}

func (d *db) writeFeeds(f feeds, updateTime string) write {
	return write{Update: &document{Name: d.stateName(), Fields: f.fields}, CurrentDocument: unchanged(updateTime)}
}

// noted is what a document of tea-changes says about a record.
type noted struct {
	seq   int64
	gone  time.Time // zero for a record that exists
	of    string
	known bool
}

func toNoted(found map[string]document, name string, feed store.Feed) noted {
	d, known := found[name]
	n := noted{seq: d.Fields[string(feed)].int(), of: d.Fields[ofField].text(), known: known && d.Fields[string(feed)].Integer != nil}
	if n.of == "" {
		n.of = d.UpdateTime
	}
	if at := d.Fields[goneAtField].micro(); at != 0 {
		n.gone = clock.FromMicro(at)
	}
	return n
}

// current reports whether the number is that of the record's last change.
func (n noted) current(record document) bool {
	return n.known && n.gone.IsZero() && n.of == record.UpdateTime
}

// noteOf is the document with the number of a record.
func (d *db) noteOf(r store.RecordName, name string, seq int64, further map[string]value) write {
	f := map[string]value{string(r.Feed): integer(seq), spaceField: text(r.Space), recordField: text(r.Key)}
	if r.Feed == store.VectorFeed {
		f[inField] = text(strings.TrimPrefix(collectionOfItem(name), d.root+"/"))
	}
	for name, v := range further {
		f[name] = v
	}
	return write{Update: &document{Name: d.changeName(name), Fields: f}}
}

func (d *db) noteGone(r store.RecordName, name string, seq int64) write {
	return d.noteOf(r, name, seq, map[string]value{goneAtField: timestamp(d.now().UnixMicro())})
}

// existing returns the document of a record that exists.
func existing(found map[string]document, name string, feed store.Feed) (document, bool) {
	record, ok := found[name]
	if ok && feed == store.VectorFeed {
		var head document
		head, ok = found[collectionOfItem(name)]
		ok = ok && toSetting(head).has(record)
	}
	return record, ok
}

// recordName returns the name of a record from its document.
func (d *db) recordName(feed store.Feed, found map[string]document, record document) store.RecordName {
	r := store.RecordName{Feed: feed}
	switch feed {
	case store.EntryFeed:
		r.Space, r.Key = record.Fields["namespace"].text(), record.Fields["key"].text()
	case store.VectorFeed:
		r.Space, r.Key = toSetting(found[collectionOfItem(record.Name)]).name, record.Fields["id"].text()
	default:
		path := strings.TrimPrefix(record.Name, d.root+"/"+d.prefix)
		collection, _, _ := strings.Cut(path, "/")
		r.Space = kindOf(collection)
		r.Key = toDocument(r.Space, record).ID
	}
	return r
}

// number assigns numbers to records that have changed since they got theirs. Those
// in removed were removed; others that do not exist have expired. also are writes of the
// same commit.
func (d *db) number(ctx context.Context, names []string, removed map[string]bool, also ...write) error {
	all := []string{d.stateName()}
	seen := map[string]bool{}
	for _, name := range names {
		add := []string{name, d.changeName(name)}
		if d.feedOf(name) == store.VectorFeed {
			add = append(add, collectionOfItem(name))
		}
		for _, one := range add {
			if !seen[one] {
				seen[one] = true
				all = append(all, one)
			}
		}
	}
	_, err := change(ctx, d, changeFields, all, func(found map[string]document) (a attempt[struct{}], err error) {
		before := found[d.stateName()]
		state := toFeeds(before)
		done := map[string]bool{}
		for _, name := range names {
			if done[name] {
				continue
			}
			done[name] = true
			feed := d.feedOf(name)
			n := toNoted(found, d.changeName(name), feed)
			record, exists := existing(found, name, feed)
			switch {
			case exists && !n.current(record):
				further := map[string]value{ofField: text(record.UpdateTime)}
				if expires, ok := record.Fields[expiresField]; ok && feed == store.EntryFeed {
					further[expiresField] = expires
				}
				a.writes = append(a.writes, d.noteOf(d.recordName(feed, found, record), name, state.next(feed), further))
			case !exists && n.known && n.gone.IsZero() && removed[name]:
				f := found[d.changeName(name)].Fields
				r := store.RecordName{Feed: feed, Space: f[spaceField].text(), Key: f[recordField].text()}
				a.writes = append(a.writes, d.noteGone(r, name, state.next(feed)))
			}
		}
		if len(a.writes) > 0 || before.Name == "" {
			a.writes = append(a.writes, d.writeFeeds(state, before.UpdateTime))
		}
		a.writes = append(a.writes, also...)
		return a, nil
	})
	return err
}

// catchUp assigns the numbers of all changes that were noted. It compares all records of
// feeds with their numbers, which also finds those that were not noted.
func (d *db) catchUp(ctx context.Context, feeds ...store.Feed) error {
	if d.readOnly != "" {
		return store.Unsupported(Name, store.Records, "remove settings.memory.read_only: reading the changes of a memory assigns numbers to them")
	}
	found, now, err := d.getAt(ctx, changeFields, d.stateName())
	if err != nil {
		return err
	}
	age := time.Duration(now-micros(found[d.stateName()].UpdateTime)) * time.Microsecond // by the clock of the server
	if len(found) == 0 {
		if err := d.number(ctx, nil, nil); err != nil { // which creates the document of the feeds
			return err
		}
	} else if age > journaled-24*time.Hour {
		feeds = store.Feeds()
	}
	for _, feed := range feeds {
		if err := d.compare(ctx, feed); err != nil {
			return fmt.Errorf("compare all records: %w", err)
		}
	}
	for {
		p, err := d.query(ctx, "", structured{From: []from{{d.prefix + opsName}}, Where: equal(unreadField, boolean(true)), Limit: numberBatch}, "")
		if err != nil {
			return err
		}
		for group := range groupsOf(p.documents) {
			if err := d.readJournal(ctx, group); err != nil {
				return err
			}
		}
		if !p.more {
			break
		}
	}
	if len(found) > 0 && age > time.Hour { // so that its age is that of the last reading
		before := found[d.stateName()]
		if err := d.commit(ctx, []write{d.writeFeeds(toFeeds(before), before.UpdateTime)}); err != nil && !conflicts(err) {
			return err
		}
	}
	return nil
}

// groupsOf yields documents of tea-ops with few names together, one with many alone.
func groupsOf(ops []document) func(yield func([]document) bool) {
	return func(yield func([]document) bool) {
		for len(ops) > 0 {
			n, names := 1, bytes.Count(ops[0].Fields[changedField].Bytes, []byte{0})
			for ; n < len(ops); n++ {
				if names += bytes.Count(ops[n].Fields[changedField].Bytes, []byte{0}); names > numberBatch {
					break
				}
			}
			if !yield(ops[:n]) {
				return
			}
			ops = ops[n:]
		}
	}
}

// readJournal assigns the numbers of the changes that documents of tea-ops name.
func (d *db) readJournal(ctx context.Context, ops []document) error {
	var names []string
	removed := map[string]bool{}
	var marks []write
	for _, op := range ops {
		for part := range strings.SplitSeq(string(op.Fields[changedField].Bytes), "\x00") {
			path, gone := strings.CutPrefix(part, string(removedMark))
			if name := d.root + "/" + path; path != "" {
				names = append(names, name)
				removed[name] = removed[name] || gone
			}
		}
		if dropped := op.Fields[droppedField].text(); dropped != "" {
			if err := d.numberDropped(ctx, dropped); err != nil {
				return err
			}
		}
		marks = append(marks, write{
			Update:     &document{Name: op.Name, Fields: map[string]value{opExpiry: timestamp(time.Now().Add(keep).UnixMicro())}},
			UpdateMask: &mask{[]string{opExpiry, unreadField, changedField, droppedField}},
		})
	}
	for len(names) > numberBatch {
		if err := d.number(ctx, names[:numberBatch], removed); err != nil {
			return err
		}
		names = names[numberBatch:]
	}
	return d.number(ctx, names, removed, marks...)
}

// numberDropped notes that the items of a collection were removed.
func (d *db) numberDropped(ctx context.Context, collection string) error {
	q := structured{From: []from{{d.prefix + changesName}}, Where: equal(inField, text(collection)), Select: selected([]string{recordField, goneAtField})}
	return d.eachBatch(ctx, "", q, func(notes []document) error {
		var names []string
		removed := map[string]bool{}
		for _, n := range notes {
			if n.Fields[goneAtField].Timestamp == "" {
				name := item(d.root+"/"+collection, n.Fields[recordField].text())
				names, removed[name] = append(names, name), true
			}
		}
		return d.number(ctx, names, removed)
	})
}

// eachBatch calls use with the results of a query in the order of their names.
func (d *db) eachBatch(ctx context.Context, parent string, q structured, use func([]document) error) error {
	var batch []document
	var failed error
	flush := func() bool {
		if len(batch) > 0 {
			failed = use(batch)
		}
		batch = nil
		return failed == nil
	}
	err := d.all(ctx, parent, q, func(one document) bool {
		batch = append(batch, one)
		return len(batch) < numberBatch || flush()
	})
	if err == nil && failed == nil {
		flush()
	}
	if err != nil {
		return err
	}
	return failed
}

// compare assigns numbers to all records of a feed that have none, and to those that no
// longer exist.
func (d *db) compare(ctx context.Context, feed store.Feed) error {
	records := func(parent, collection string) error {
		return d.eachBatch(ctx, parent, structured{From: []from{{collection}}, Select: selected([]string{nameField})}, func(records []document) error {
			var names []string
			for _, r := range records {
				if d.feedOf(r.Name) != "" { // not a part of an entry
					names = append(names, r.Name)
				}
			}
			return d.number(ctx, names, nil)
		})
	}
	collections, err := d.collections(ctx)
	if err != nil {
		return err
	}
	for _, name := range collections {
		switch {
		case name == vectorsName && feed == store.VectorFeed:
			err = d.eachBatch(ctx, "", structured{From: []from{{d.prefix + name}}, Select: selected([]string{nameField})}, func(all []document) error {
				for _, c := range all {
					if err := records(c.Name, itemsName); err != nil {
						return err
					}
				}
				return nil
			})
		case d.feedOf(d.name(name, "a")) == feed:
			err = records("", d.prefix+name)
		}
		if err != nil {
			return err
		}
	}
	return d.eachNote(ctx, feed, func(notes []document) error {
		var names []string
		removed := map[string]bool{}
		for _, n := range notes {
			if _, expires := n.Fields[expiresField]; expires {
				continue // one that is missing has expired, by the clock of another device
			}
			if r, gone := d.notedName(n); !gone {
				name := d.recordDocument(r)
				names, removed[name] = append(names, name), true
			}
		}
		return d.number(ctx, names, removed)
	})
}

// eachNote calls use with the documents that have the numbers of a feed, in their order.
func (d *db) eachNote(ctx context.Context, feed store.Feed, use func([]document) error) error {
	for after := int64(0); ; {
		p, err := d.query(ctx, "", d.notesAfter(feed, after, numberBatch), "")
		if err != nil || len(p.documents) == 0 {
			return err
		}
		after = p.documents[len(p.documents)-1].Fields[string(feed)].int()
		if err := use(p.documents); err != nil || !p.more {
			return err
		}
	}
}

// notesAfter selects the first documents with the numbers of a feed after one.
func (d *db) notesAfter(feed store.Feed, after int64, limit int) structured {
	return structured{
		From: []from{{d.prefix + changesName}}, OrderBy: []order{{field{string(feed)}}}, Limit: limit,
		Where: &filterOf{FieldFilter: &fieldFilter{field{string(feed)}, "GREATER_THAN", integer(after)}},
	}
}

// notedName returns the name of the record whose number a document has.
func (d *db) notedName(n document) (r store.RecordName, gone bool) {
	for _, feed := range store.Feeds() {
		if n.Fields[string(feed)].Integer != nil {
			r = store.RecordName{Feed: feed, Space: n.Fields[spaceField].text(), Key: n.Fields[recordField].text()}
		}
	}
	return r, n.Fields[goneAtField].Timestamp != ""
}

// recordDocument returns the name of the document of a record.
func (d *db) recordDocument(r store.RecordName) string {
	switch r.Feed {
	case store.EntryFeed:
		return d.name(entriesName, spaceOf(r.Space).id(r.Key))
	case store.VectorFeed:
		return item((&Vectors{d: d}).collection(r.Space), r.Key)
	default:
		return d.documentName(r.Space, r.Key)
	}
}

package firestore

import (
	"context"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// State returns the state of a feed as of the last time that its changes were read.
func (d *db) State(ctx context.Context, feed store.Feed) (store.FeedState, error) {
	found, err := d.get(ctx, changeFields, d.stateName())
	return toState(found[d.stateName()], feed), err
}

func toState(one document, feed store.Feed) store.FeedState {
	f := one.Fields
	return store.FeedState{Identity: f[identityField].text(), Last: f[lastField+string(feed)].int(), Forgotten: f[forgottenPrefix+string(feed)].int()}
}

// Changes assigns the missing numbers, and returns changes of a feed.
func (d *db) Changes(ctx context.Context, q store.RowChanges) (page store.RowPage, err error) {
	if q.Space != "" {
		return d.collectionChanges(ctx, q)
	}
	var compared []store.Feed
	if q.After == 0 && !q.FromStart {
		compared = []store.Feed{q.Feed}
	}
	before, err := d.catchUp(ctx, compared...)
	if err != nil {
		return page, err
	}
	state := toState(before, q.Feed)
	page.Last, page.Forgotten = state.Last, state.Forgotten
	p, err := d.query(ctx, "", d.notesAfter(q.Feed, q.After, min(q.Limit, pageDocuments)), "")
	if err != nil || len(p.documents) == 0 {
		return page, err
	}
	most := int64(maxChanges)
	if q.MaxBytes > 0 {
		most = min(most, q.MaxBytes)
	}
	var cut bool
	if page.Rows, cut, err = d.read(ctx, q.Feed, p.documents, most); err != nil {
		return page, err
	}
	last := p.documents[len(p.documents)-1].Fields[string(q.Feed)].int()
	if page.More = cut || p.more; cut {
		last = page.Rows[len(page.Rows)-1].Seq
	}
	if page.More || last > page.Last {
		page.Last = last
	}
	return page, nil
}

const (
	// maxChanges bounds the rows of a page of changes.
	maxChanges = 4 << 20
	// The number of documents that are read at once at first. Later it follows from the sizes of the previous ones.
	firstReading = 32
	mostReading  = 250
	readingBytes = 2 << 20
)

// read returns the rows with the numbers in notes, up to a size. It omits rows that have expired or whose removal is
// not numbered yet.
func (d *db) read(ctx context.Context, feed store.Feed, notes []document, size int64) (all []store.Row, cut bool, err error) {
	bytes := int64(0)
	for n := firstReading; len(notes) > 0 && !cut; {
		part := notes[:min(n, len(notes))]
		notes = notes[len(part):]
		var names []string
		for _, note := range part {
			if name, deleted := recordOf(note); !deleted {
				names = append(names, d.withHead(d.recordDocument(name))...)
			}
		}
		found := map[string]document{}
		if len(names) > 0 {
			if found, err = d.get(ctx, nil, compact(names)...); err != nil {
				return nil, false, err
			}
		}
		before := bytes
		var rows []store.Row
		var heads []document
		for _, note := range part {
			name, deleted := recordOf(note)
			r, head := store.Row{RecordName: name, Deleted: true, Updated: note.Fields[deletedAtField].micro()}, document{}
			if !deleted {
				one, ok := existing(found, d.recordDocument(name), feed)
				if !ok {
					continue
				}
				r, head = toRow(feed, name.Space, one), one
			}
			r.Seq = note.Fields[string(feed)].int()
			bytes += max(r.Size, int64(len(r.Body)))
			if cut = bytes > size && len(all)+len(rows) > 0; cut {
				break
			}
			rows, heads = append(rows, r), append(heads, head)
		}
		if err := d.fill(ctx, rows, heads, nil); err != nil {
			return nil, false, err
		}
		all = append(all, rows...)
		n = int(min(mostReading, max(1, readingBytes*int64(len(part))/max(1, bytes-before))))
	}
	return all, cut, nil
}

// numbered returns the rows and tombstones with these names.
func (d *db) numbered(ctx context.Context, feed store.Feed, names []store.RecordName) (all []store.Row, err error) {
	if err := d.numbers(); err != nil {
		return nil, err
	}
	for part := range slices.Chunk(names, numberBatch) {
		records := make([]string, len(part))
		for i, name := range part {
			records[i] = d.recordDocument(name)
		}
		notes, err := d.number(ctx, records, nil)
		if err != nil {
			return nil, err
		}
		rows, _, err := d.read(ctx, feed, notes, 1<<62)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

func (d *db) forget(ctx context.Context, before int64) error {
	old := structured{From: []from{{d.prefix + changesName}}, Where: &filterOf{FieldFilter: &fieldFilter{field{deletedAtField}, "LESS_THAN", timestamp(before)}}, Limit: batch}
	for {
		p, err := d.query(ctx, "", old, "")
		if err != nil || len(p.documents) == 0 {
			return err
		}
		_, err = change(ctx, d, changeFields, []string{d.stateName()}, func(found map[string]document) (a attempt[struct{}], err error) {
			state := toFeeds(found[d.stateName()])
			for _, n := range p.documents {
				r, _ := recordOf(n)
				forgotten := forgottenPrefix + string(r.Feed)
				state[forgotten] = integer(max(state[forgotten].int(), n.Fields[string(r.Feed)].int()))
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

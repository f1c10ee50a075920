package firestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/storekit"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

var (
	_ store.Driver         = (*db)(nil)
	_ store.Bounded        = (*db)(nil)
	_ store.DocumentFinder = (*db)(nil)
	_ store.VectorCacher   = (*db)(nil)
	_ store.PrefixDeleter  = (*db)(nil)
	_ store.Inspector      = (*db)(nil)
	_ store.Resetter       = (*db)(nil)
)

// maxMetadata bounds the metadata of an entry.
const maxMetadata = 512 << 10

// Bounds returns the bound of metadata. The bound of a document depends on its fields; see checkSize.
func (d *db) Bounds() (metadata, document int) { return maxMetadata, 0 }

// CachesVectors reports whether vectors are cached; they cannot be read by ID here.
func (d *db) CachesVectors() bool { return true }

// Get returns rows.
func (d *db) Get(ctx context.Context, q store.RowQuery) ([]store.Row, error) {
	switch {
	case len(q.Names) == 0:
		return nil, nil
	case q.Numbered:
		return d.numbered(ctx, q.Feed, q.Names)
	case len(q.Names) == 1 && q.Feed == store.EntryFeed && !q.NoBody:
		return d.entry(ctx, q.Names[0])
	}
	var names, fieldPaths []string
	for _, n := range q.Names {
		names = append(names, d.withHead(d.recordDocument(n))...)
	}
	if q.NoBody {
		fieldPaths = withoutBody[q.Feed]
	}
	found, err := d.get(ctx, fieldPaths, compact(names)...)
	if err != nil {
		return nil, err
	}
	return d.rows(ctx, q.Names, found)
}

func compact(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func (d *db) entry(ctx context.Context, n store.RecordName) ([]store.Row, error) {
	p := d.place(n.Feed, n.Space)
	id := p.ids.id(n.Key)
	found := map[string]document{}
	q := structured{From: []from{{p.collection}}, Where: join(nil, p.between(id, true, id+afterParts)...)}
	err := d.all(ctx, "", q, func(one document) bool { found[one.Name] = one; return true })
	if err != nil {
		return nil, err
	}
	return d.rows(ctx, []store.RecordName{n}, found)
}

// rows returns the rows with these names from the documents found.
func (d *db) rows(ctx context.Context, names []store.RecordName, found map[string]document) (rows []store.Row, err error) {
	var heads []document
	for _, n := range names {
		if one, ok := existing(found, d.recordDocument(n), n.Feed); ok {
			rows, heads = append(rows, toRow(n.Feed, n.Space, one)), append(heads, one)
		}
	}
	return rows, d.fill(ctx, rows, heads, found)
}

type hit struct {
	store.Row
	document document
}

type scan struct {
	place
	query         structured
	prefix, after string
	// wanted selects the documents that become rows; nil = all.
	wanted func(document) bool
	// use is called with the rows in the order of their keys, until it returns false.
	use func(*hit) (bool, error)
	// enough reports whether enough rows were read; nil = never.
	enough func() bool
}

func (d *db) scan(ctx context.Context, s scan) error {
	first, inclusive, end := s.ids.bounds(s.prefix, s.after)
	s.query.From, s.query.Where = []from{{s.collection}}, join(s.query.Where, s.between(first, inclusive, end)...)
	g := group{ids: s.ids, use: func(h *hit) (bool, error) {
		if !strings.HasPrefix(h.Key, s.prefix) || h.Key <= s.after {
			return true, nil
		}
		return s.use(h)
	}}
	err := d.pages(ctx, s.parent, s.query, func(p page) bool {
		for _, one := range p.documents {
			if (s.wanted == nil || s.wanted(one)) && !g.take(&hit{toRow(s.feed, s.space, one), one}) {
				return false
			}
		}
		g.ended = p.more && s.enough != nil && s.enough()
		return !g.ended
	})
	if err == nil && !g.ended {
		g.flush()
	}
	return errors.Join(err, g.err)
}

// group sorts rows by key: rows with long keys can have ids with the same beginning, and are read in the order of the
// ids.
type group struct {
	ids   space
	use   func(*hit) (more bool, err error)
	rows  []*hit
	part  string // the beginning that the keys of the rows share, "" for a key that is in its id
	ended bool
	err   error
}

// take adds a row and reports whether more are needed.
func (g *group) take(one *hit) bool {
	part, long := g.ids.cut(one.Key)
	if !long || part != g.part {
		if !g.flush() {
			return false
		}
		if g.part = part; !long {
			g.part = ""
		}
	}
	g.rows = append(g.rows, one)
	return true
}

// flush passes the rows on and reports whether more are needed.
func (g *group) flush() bool {
	slices.SortFunc(g.rows, func(a, b *hit) int { return strings.Compare(a.Key, b.Key) })
	for _, one := range g.rows {
		more, err := g.use(one)
		if err != nil || !more {
			g.ended, g.err = true, err
			return false
		}
	}
	g.rows = nil
	return true
}

// Scan returns rows of a space.
func (d *db) Scan(ctx context.Context, q store.RowRange) (page store.RowPage, err error) {
	s := scan{place: d.place(q.Feed, q.Space), prefix: q.Prefix, after: q.After}
	parts := map[string]document{}
	switch q.Feed {
	case store.EntryFeed:
		s.wanted = func(one document) bool {
			part := isPart(one.Name)
			if part {
				parts[one.Name] = one
			}
			return !part
		}
	case store.VectorFeed:
		found, err := d.get(ctx, nil, s.parent)
		if err != nil || len(found) == 0 {
			return page, err
		}
		s.wanted = toSetting(found[s.parent]).has
	}
	s.query.Limit = q.Limit + 2 // one more, and the row that ends its group
	if q.NoBody {
		s.query.Select = selected(withoutBody[q.Feed])
	}
	var heads []document
	bytes, most := int64(0), int64(pageBytes)
	if q.MaxBytes > 0 {
		most = min(most, q.MaxBytes)
	}
	s.enough = func() bool { page.More = len(page.Rows) > 0; return page.More }
	s.use = func(h *hit) (bool, error) {
		if !q.NoBody {
			bytes += max(h.Size, int64(len(h.Body)))
		}
		if page.More = len(page.Rows) == q.Limit || len(page.Rows) > 0 && bytes > most; page.More {
			return false, nil
		}
		page.Rows, heads = append(page.Rows, h.Row), append(heads, h.document)
		return true, nil
	}
	if err := d.scan(ctx, s); err != nil {
		return page, err
	}
	return page, d.fill(ctx, page.Rows, heads, parts)
}

// collectionChanges reads the changes of a vector collection, which are numbered separately.
func (d *db) collectionChanges(ctx context.Context, q store.RowChanges) (page store.RowPage, err error) {
	p := d.place(q.Feed, q.Space)
	found, err := d.get(ctx, nil, p.parent)
	if err != nil || len(found) == 0 {
		return page, err
	}
	s := toSetting(found[p.parent])
	if page.Space, page.Last = s.toSpace(), s.last; q.After >= s.last {
		return page, nil
	}
	read, err := d.query(ctx, p.parent, structured{
		From: []from{{itemsName}}, OrderBy: []order{{field{seqField}}}, Limit: q.Limit,
		Where: &filterOf{FieldFilter: &fieldFilter{field{seqField}, "GREATER_THAN", integer(q.After)}},
	}, "")
	if err != nil {
		return page, err
	}
	for _, one := range read.documents {
		r := toRow(q.Feed, q.Space, one)
		r.ID, r.Seq, r.Deleted = numberOf(one.Name), one.Fields[seqField].int(), !s.has(one)
		page.Rows = append(page.Rows, r)
	}
	if page.More = read.more; page.More {
		page.Last = 0
	}
	if n := len(page.Rows); n > 0 {
		page.Last = max(page.Last, page.Rows[n-1].Seq)
	}
	return page, nil
}

// Spaces describes vector collections.
func (d *db) Spaces(ctx context.Context, names ...string) (all []store.Space, err error) {
	if len(names) > 0 {
		heads := make([]string, len(names))
		for i, name := range names {
			heads[i] = d.place(store.VectorFeed, name).parent
		}
		found, err := d.get(ctx, nil, compact(heads)...)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			all = append(all, toSetting(one).toSpace())
		}
	} else {
		err = d.all(ctx, "", structured{From: []from{{d.prefix + vectorsName}}}, func(one document) bool {
			all = append(all, toSetting(one).toSpace())
			return true
		})
	}
	slices.SortFunc(all, func(a, b store.Space) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Drop removes a collection: first its document, which hides the items from readers, then the items' documents.
func (d *db) Drop(ctx context.Context, name string) (rows int, existed bool, err error) {
	head := d.place(store.VectorFeed, name).parent
	before, err := change(ctx, d, []string{"count"}, []string{head}, func(found map[string]document) (a attempt[*document], err error) {
		if one, ok := found[head]; ok {
			a.result = &one
			a.writes = []write{{Delete: head, CurrentDocument: unchanged(one.UpdateTime)}}
			a.dropped = strings.TrimPrefix(head, d.root+"/")
		}
		return a, nil
	})
	if err != nil || before == nil {
		return 0, false, err
	}
	return int(before.Fields["count"].int()), true, d.empty(ctx, head, itemsName)
}

// DeletePrefix removes the entries whose keys begin with prefix.
func (d *db) DeletePrefix(ctx context.Context, space, prefix string, now int64) (n int, err error) {
	live := 0
	var waiting []write
	flush := func() error {
		if len(waiting) == 0 {
			return nil
		}
		_, err := change(ctx, d, nil, nil, func(map[string]document) (attempt[struct{}], error) { return attempt[struct{}]{writes: waiting}, nil })
		if err != nil {
			return err // some may have been removed; the call can be repeated
		}
		n, live, waiting = n+live, 0, nil
		return nil
	}
	s := scan{place: d.place(store.EntryFeed, space), prefix: prefix, wanted: func(one document) bool { return !isPart(one.Name) }}
	s.query.Select = selected([]string{"namespace", "key", "expires_at", contentField, partsField})
	s.use = func(h *hit) (bool, error) {
		for _, name := range append(partsOf(h.document), h.document.Name) {
			waiting = append(waiting, write{Delete: name})
		}
		if h.Expires == 0 || h.Expires > now {
			live++
		}
		if len(waiting) < batch {
			return true, nil
		}
		return true, flush()
	}
	if err = d.scan(ctx, s); err == nil {
		err = flush()
	}
	return n, err
}

// Sweep removes expired entries, parts of values whose upload was not completed, old tombstones, and documents of calls
// that can no longer be repeated.
func (d *db) Sweep(ctx context.Context, expired, deleted int64) (n int, err error) {
	q := structured{
		From: []from{{d.prefix + entriesName}}, Limit: batch, Select: selected([]string{contentField, partsField}),
		Where: &filterOf{FieldFilter: &fieldFilter{field{"expires_at"}, "LESS_THAN", timestamp(expired)}},
	}
	for {
		p, err := d.query(ctx, "", q, "")
		if err != nil {
			return n, err
		}
		removed, err := d.sweep(ctx, p.documents)
		n += removed
		if err != nil {
			return n, err
		}
		if !p.more {
			return n, errors.Join(
				d.sweepOlder(ctx, entriesName, uploadedField, time.Now().Add(-keep)),
				d.sweepOlder(ctx, opsName, opExpiry, time.Now()),
				d.sweepOlder(ctx, callsName, opExpiry, time.Now()),
				d.forget(ctx, deleted),
			)
		}
	}
}

// sweep removes entries that have not changed, entries with parts one by one.
func (d *db) sweep(ctx context.Context, all []document) (n int, err error) {
	var small []write
	for _, one := range all {
		w := removal(one)
		if len(w) == 1 {
			small = append(small, w...)
			continue
		}
		switch err := d.commit(ctx, w); {
		case err == nil:
			n++
		case !conflicts(err):
			return n, err
		}
	}
	if len(small) == 0 {
		return n, nil
	}
	done, err := d.eachWrite(ctx, small)
	for _, ok := range done {
		if ok {
			n++
		}
	}
	return n, err
}

// maxPage bounds the limits of queries that stop reading when they have enough documents.
const maxPage = 1 << 20

// FindDocuments returns documents of one kind. Firestore selects by equality and id; other conditions and orders are
// applied to the result.
func (d *db) FindDocuments(ctx context.Context, q store.DocumentQuery) ([]store.Row, error) {
	limit := storekit.Limit(q)
	enough := -1 // all are needed for the order
	if q.OrderBy == "id" && !q.Descending && limit < maxPage {
		enough = q.Offset + limit
	}
	found, err := d.find(ctx, q, enough)
	if err != nil {
		return nil, err
	}
	storekit.SortRows(found, q.OrderBy, q.Descending)
	page := storekit.Page(found, q)
	rows := make([]store.Row, len(page))
	for i, one := range page {
		rows[i] = store.Row{RecordName: store.RecordName{Feed: store.DocumentFeed, Space: one.Kind, Key: one.ID}, Body: one.Body, Version: one.Version, Seq: one.Seq}
	}
	return rows, nil
}

// CountDocuments returns the number of documents that match a query, without its limit.
func (d *db) CountDocuments(ctx context.Context, q store.DocumentQuery) (int, error) {
	if len(q.Where) == 0 {
		n, err := d.count(ctx, "", structured{From: []from{{d.prefix + collectionOf(q.Kind)}}})
		return int(n), err
	}
	found, err := d.find(ctx, q, -1)
	return len(found), err
}

// find returns the documents that match the conditions, in the order of their ids: only the first ones if enough is not
// negative.
func (d *db) find(ctx context.Context, q store.DocumentQuery, enough int) (all []storekit.Row, err error) {
	s, exact := d.native(q)
	if enough >= 0 && exact {
		s.query.Limit = min(enough+1, pageDocuments)
	}
	s.use = func(h *hit) (bool, error) {
		if one := storekit.NewRow(h.Document()); one.Matches(q.Where) {
			all = append(all, one)
		}
		return enough < 0 || len(all) < enough, nil
	}
	err = d.scan(ctx, s)
	return all, err
}

// native returns the part of a query that Firestore executes: equality with a value, and the prefix and lower bound of
// ids. exact reports whether this is the whole query.
func (d *db) native(q store.DocumentQuery) (s scan, exact bool) {
	s.place, exact = d.place(store.DocumentFeed, q.Kind), true
	for _, c := range q.Where {
		given, isText := c.Value.(string)
		switch {
		case c.Field == "id" && c.Op == store.Prefix && given > s.prefix:
			s.prefix = given
		case c.Field == "id" && c.Op == store.Gt && given > s.after:
			s.after = given
		case c.Field == "id" || c.Op != store.Eq || c.Value == nil || isText && len(given) > 1000 || strings.HasPrefix(c.Field, ownFields):
			exact = false // a long text is only indexed by its beginning
		default:
			s.query.Where = join(s.query.Where, *equal(c.Field, toValue(storekit.Number(c.Value), 1)))
		}
	}
	return s, exact
}

// Inspect counts the records. Firestore does not report sizes.
func (d *db) Inspect(ctx context.Context) (entries, bytes map[string]int64, err error) {
	names, err := d.collections(ctx)
	entries, bytes = map[string]int64{"ltm": 0, "vectors": 0}, map[string]int64{}
	for _, name := range names {
		if err != nil {
			break
		}
		q := structured{From: []from{{d.prefix + name}}}
		switch name {
		case opsName, callsName, changesName:
		case inlinedName:
			err = d.tables(ctx, func(_ string, t tableState) error { entries["rows"] += t.rows; return nil })
		case entriesName:
			q.Where = equal("part", boolean(false))
			entries["ltm"], err = d.count(ctx, "", q)
		case vectorsName:
			var all []store.Space
			all, err = d.Spaces(ctx)
			for _, s := range all {
				entries["vectors"] += int64(s.Count)
			}
		default:
			entries[kindOf(name)], err = d.count(ctx, "", q)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("count the records: %w", err)
	}
	return entries, bytes, nil
}

// Reset removes all data.
func (d *db) Reset(ctx context.Context) error {
	names, err := d.collections(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch name {
		case vectorsName:
			all, err := d.Spaces(ctx)
			if err != nil {
				return err
			}
			for _, s := range all {
				if _, _, err := d.Drop(ctx, s.Name); err != nil {
					return err
				}
			}
			continue
		case inlinedName:
			if err := d.emptyTables(ctx); err != nil {
				return err
			}
		}
		if err := d.empty(ctx, "", d.prefix+name); err != nil {
			return err
		}
	}
	return nil
}

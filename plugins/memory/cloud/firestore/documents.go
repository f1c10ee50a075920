package firestore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storekit"
)

// Documents is a MetadataStore. A kind is a collection. The members of a document
// are fields, for other programs and for conditions; a field has the body as it was
// given.
type Documents struct{ d *db }

var _ store.MetadataStore = (*Documents)(nil)

// kinds are the collections of kinds whose names other programs expect.
var kinds = map[string]string{
	"agent_memory": "agent_memory", "session": "sessions",
	"catalog_table": "ducklake_tables", "catalog_file": "ducklake_files", "catalog_snapshot": "ducklake_snapshots",
}

func collectionOf(kind string) string {
	if name, ok := kinds[kind]; ok {
		return name
	}
	return otherKinds + escape(kind)
}

func kindOf(collection string) string {
	for kind, name := range kinds {
		if name == collection {
			return kind
		}
	}
	return unescape(strings.TrimPrefix(collection, otherKinds))
}

// The fields of a document that are not members of its body.
const (
	bodyField    = ownFields + "body"
	versionField = ownFields + "version"
	// placeField is the place of the document among those of its commit.
	placeField = ownFields + "place"
	// idField is the id, where that of Firestore's document has only a part of it.
	idField = ownFields + "id"
)

// seq returns the number of a document's last change: the time of the commit and
// the place in it. It suffices until 2091.
func seq(d document) int64 {
	const epoch, places = 1_577_836_800_000_000, 1 << 12 // 2020
	return (micros(d.UpdateTime)-epoch)*places + min(d.Fields[placeField].int(), places-1)
}

func (d *db) documentName(kind, id string) string { return d.name(collectionOf(kind), whole.id(id)) }

// toDocument returns a document. One that another program has written has no
// version; it gets the first one.
func toDocument(kind string, d document) store.Document {
	id := d.Fields[idField].text()
	if id == "" {
		id = unescape(strings.TrimSuffix(d.Name[strings.LastIndexByte(d.Name, '/')+1:], reservedMark))
	}
	doc := store.Document{Kind: kind, ID: id, Version: max(1, d.Fields[versionField].int()), Seq: seq(d)}
	if body := d.Fields[bodyField]; body.String != nil {
		doc.Body = json.RawMessage(body.text())
	} else {
		doc.Body = toBody(d.Fields)
	}
	return doc
}

// Get returns the document, or an error that wraps store.ErrNotFound.
func (s *Documents) Get(ctx context.Context, kind, id string) (store.Document, error) {
	name := s.d.documentName(kind, id)
	if err := documents.Check(store.Change{Kind: kind, ID: id}); err != nil {
		return store.Document{}, fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
	}
	found, err := s.d.get(ctx, nil, name)
	if err != nil {
		return store.Document{}, fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	d, ok := found[name]
	if !ok {
		return store.Document{}, fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
	}
	return toDocument(kind, d), nil
}

// Apply does the changes atomically.
func (s *Documents) Apply(ctx context.Context, changes ...store.Change) error {
	for _, c := range changes {
		if err := documents.Check(c); err != nil {
			return err
		}
	}
	if err := s.d.writable(); err != nil || len(changes) == 0 {
		return err
	}
	names := make([]string, len(changes))
	for i, c := range changes {
		names[i] = s.d.documentName(c.Kind, c.ID)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	_, err := change(ctx, s.d, []string{versionField}, names, func(found map[string]document) (a attempt[struct{}], err error) {
		versions := map[documents.Name]int64{}
		for _, c := range changes {
			if d, ok := found[s.d.documentName(c.Kind, c.ID)]; ok {
				versions[documents.Name{Kind: c.Kind, ID: c.ID}] = max(1, d.Fields[versionField].int())
			}
		}
		merged, err := documents.Merge(changes, versions)
		if err != nil {
			return a, err
		}
		changed := false
		for i, m := range merged {
			w, err := s.write(m, i, found)
			if err != nil {
				return a, err
			}
			changed = changed || w.Verify == ""
			a.writes = append(a.writes, w)
		}
		if !changed {
			a.writes = nil
		}
		return a, nil
	})
	return err
}

// write returns the change of one document, the i-th of its commit.
func (s *Documents) write(m documents.Written, i int, found map[string]document) (write, error) {
	name := s.d.documentName(m.Kind, m.ID)
	condition := unchanged(found[name].UpdateTime)
	switch {
	case m.Body == nil && m.Before == 0:
		return write{Verify: name, CurrentDocument: condition}, nil
	case m.Body == nil:
		return write{Delete: name, CurrentDocument: condition}, nil
	}
	all, err := toFields(m.Body)
	if err != nil {
		return write{}, err
	}
	all[bodyField], all[versionField], all[placeField] = text(string(m.Body)), integer(m.Version), integer(int64(i))
	if _, long := whole.cut(m.ID); long {
		all[idField] = text(m.ID)
	}
	if size := sizeOf(all); size > maxDocument {
		return write{}, tooLarge(m.Kind+" "+m.ID, size)
	}
	return write{Update: &document{Name: name, Fields: all}, CurrentDocument: condition}, nil
}

// maxPage is the limit up to which reading ends early.
const maxPage = 1 << 20

// Query returns documents of one kind. Firestore selects by equality and by id; the
// other conditions and orders are applied to what it finds.
func (s *Documents) Query(ctx context.Context, q store.DocumentQuery) ([]store.Document, error) {
	if err := storekit.CheckQuery(q); err != nil {
		return nil, err
	}
	limit := storekit.Limit(q)
	enough := -1 // all are needed for their order
	if q.OrderBy == "id" && !q.Descending && limit < maxPage {
		enough = q.Offset + limit
	}
	all, err := s.find(ctx, q, enough)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", q.Kind, err)
	}
	storekit.SortRows(all, q.OrderBy, q.Descending)
	return storekit.Page(all, q), nil
}

// Count returns the number of documents that match a query, without its limit.
func (s *Documents) Count(ctx context.Context, q store.DocumentQuery) (int, error) {
	if err := storekit.CheckQuery(q); err != nil {
		return 0, err
	}
	if len(q.Where) == 0 {
		n, err := s.d.count(ctx, "", structured{From: []from{{s.d.prefix + collectionOf(q.Kind)}}})
		if err != nil {
			return 0, fmt.Errorf("count %s: %w", q.Kind, err)
		}
		return int(n), nil
	}
	all, err := s.find(ctx, q, -1)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", q.Kind, err)
	}
	return len(all), nil
}

// find returns the documents that match the conditions, in the order of their ids:
// the first ones if enough is not negative.
func (s *Documents) find(ctx context.Context, q store.DocumentQuery, enough int) (all []storekit.Row, err error) {
	native, prefix, after, exact := s.native(q)
	from, inclusive, to := whole.bounds(prefix, after)
	native.Where = join(native.Where, s.d.between(collectionOf(q.Kind), from, inclusive, to)...)
	if enough >= 0 && exact {
		native.Limit = min(enough+1, pageDocuments)
	}
	group := 0 // where the documents begin whose ids have a common part
	part := ""
	err = s.d.all(ctx, "", native, func(d document) bool {
		r := storekit.NewRow(toDocument(q.Kind, d))
		p, long := whole.cut(r.ID)
		if !long || p != part {
			storekit.SortRows(all[group:], "id", false)
			if group, part = len(all), p; !long {
				part = ""
			}
			if enough >= 0 && len(all) >= enough {
				return false
			}
		}
		if r.Matches(q.Where) {
			all = append(all, r)
		}
		if !long {
			group = len(all)
		}
		return true
	})
	storekit.SortRows(all[min(group, len(all)):], "id", false)
	return all, err
}

// join joins conditions that must all match.
func join(first *filterOf, others ...filterOf) *filterOf {
	all := others
	if first != nil {
		all = append([]filterOf{*first}, others...)
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return &all[0]
	}
	return &filterOf{Composite: &compositeFilter{"AND", all}}
}

// between returns the conditions for the ids between two.
func (c *client) between(collection, from string, inclusive bool, to string) (all []filterOf) {
	bound := func(op, id string) {
		name := c.name(collection, id)
		all = append(all, filterOf{FieldFilter: &fieldFilter{field{nameField}, op, value{Reference: &name}}})
	}
	switch {
	case from == "":
	case inclusive:
		bound("GREATER_THAN_OR_EQUAL", from)
	default:
		bound("GREATER_THAN", from)
	}
	if to != "" {
		bound("LESS_THAN", to)
	}
	return all
}

// native returns the part of a query that Firestore does: equality with a value, and
// the prefix and the lower bound of the ids. exact reports that this is all of it.
func (s *Documents) native(q store.DocumentQuery) (native structured, prefix, after string, exact bool) {
	exact = true
	native.From = []from{{s.d.prefix + collectionOf(q.Kind)}}
	for _, c := range q.Where {
		given, isText := c.Value.(string)
		switch {
		case c.Field == "id" && c.Op == store.Prefix && given > prefix:
			prefix = given
		case c.Field == "id" && c.Op == store.Gt && given > after:
			after = given
		case c.Field == "id" || c.Op != store.Eq || c.Value == nil || isText && len(given) > 1000 || strings.HasPrefix(c.Field, ownFields):
			exact = false // an index has only the beginning of a long text
		default:
			native.Where = join(native.Where, *equal(c.Field, toValue(storekit.Number(c.Value), 1)))
		}
	}
	return native, prefix, after, exact
}

package firestore

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"

	jsonvalue "github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Vectors is a VectorIndex. A collection is a document in embeddings, which has the
// number of its last change; its items are in the collection items below it. An item
// that was removed stays for a while as a document with its number only. The first
// search of a collection reads all of its vectors, later ones read what has
// changed.
type Vectors struct {
	d      *db
	closed closed

	mu      sync.Mutex
	mirrors map[string]*mirror
}

var _ store.VectorIndex = (*Vectors)(nil)

func newVectors(d *db) *Vectors { return &Vectors{d: d, mirrors: map[string]*mirror{}} }

// Close frees the vectors in memory. The connections stay open.
func (x *Vectors) Close() error {
	x.closed.Store(true)
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.mirrors {
		m.mu.Lock()
		m.drop()
		m.mu.Unlock()
	}
	x.mirrors = map[string]*mirror{}
	return nil
}

// itemsName is the name of the collection of a collection's items.
const itemsName = "items"

// The fields of a collection and of an item.
const (
	seqField = "seq"
	// bornField has the same random number in a collection and in its items. Those
	// of a collection that was dropped have another one.
	bornField = "born"
	// goneField marks an item that was removed.
	goneField = "gone"
)

// plainName matches the names of collections that are their ids. The id of a
// collection becomes part of addresses, of which not every server keeps all
// characters.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

func (x *Vectors) collection(name string) string {
	if !plainName.MatchString(name) {
		name = "~" + base64.RawURLEncoding.EncodeToString([]byte(name))
	}
	return x.d.name(vectorsName, name)
}

func item(collection, id string) string { return collection + "/" + itemsName + "/" + whole.id(id) }

// stateOfItems is what a write has to read.
var stateOfItems = []string{"name", "dimension", bornField, seqField, "count", goneField}

// setting is what the document of a collection says.
type setting struct {
	name       string
	dimension  int
	born, last int64
	count      int64
}

func toSetting(d document) setting {
	f := d.Fields
	return setting{name: f["name"].text(), dimension: int(f["dimension"].int()), born: f[bornField].int(), last: f[seqField].int(), count: f["count"].int()}
}

func (s setting) write(name, updateTime string) write {
	return write{CurrentDocument: unchanged(updateTime), Update: &document{Name: name, Fields: map[string]value{
		"name": text(s.name), "dimension": integer(int64(s.dimension)), bornField: integer(s.born), seqField: integer(s.last), "count": integer(s.count),
	}}}
}

// Store writes the items atomically.
func (x *Vectors) Store(ctx context.Context, collection string, items ...store.VectorItem) error {
	if err := x.closed.check(ctx); err != nil {
		return err
	}
	metadata, err := vectors.Check(collection, items)
	if err != nil || len(items) == 0 {
		return err
	}
	name := x.collection(collection)
	names := []string{name}
	dimension := len(items[0].Embedding)
	for _, one := range items {
		if len(one.Embedding) != dimension {
			return vectors.WrongDimension(collection, len(one.Embedding), dimension)
		}
		names = append(names, item(name, one.ID))
	}
	born := rand.Int64() + 1 //nolint:gosec // not a secret
	_, err = change(ctx, x.d, stateOfItems, names, func(found map[string]document) (a attempt[struct{}], err error) {
		s := setting{name: collection, dimension: dimension, born: born}
		if before, ok := found[name]; ok {
			if s = toSetting(before); s.dimension != dimension {
				return a, vectors.WrongDimension(collection, dimension, s.dimension)
			}
		}
		for i, one := range items {
			s.last++
			f := map[string]value{"id": text(one.ID), seqField: integer(s.last), bornField: integer(s.born), "text": text(one.Text), "embedding": {Bytes: vectors.Encode(one.Embedding)}}
			if metadata[i] != "" {
				f[metadataField] = text(metadata[i])
			}
			if size := sizeOf(f); size > maxDocument {
				return a, tooLarge(fmt.Sprintf("item %q", one.ID), size)
			}
			if before, ok := found[names[i+1]]; !ok || !s.has(before) {
				s.count++
			}
			a.writes = append(a.writes, write{Update: &document{Name: names[i+1], Fields: f}})
		}
		// The document of the collection has changed if one of its items has.
		a.writes = append(a.writes, s.write(name, found[name].UpdateTime))
		return a, nil
	})
	return err
}

func isGone(d document) bool { b := d.Fields[goneField].Boolean; return b != nil && *b }

// keepGone is the number of changes for which removed items are remembered. A
// device that has seen none of so many reads the collection again.
const keepGone = 10_000

// deleteBatch is the number of items that are removed in a commit.
const deleteBatch = 1000

// Delete removes items and returns how many existed.
func (x *Vectors) Delete(ctx context.Context, collection string, ids ...string) (deleted int, err error) {
	if err := x.closed.check(ctx); err != nil {
		return 0, err
	}
	if ids = vectors.Storable(ids); !vectors.Named(collection) || len(ids) == 0 {
		return 0, ctx.Err()
	}
	name := x.collection(collection)
	for len(ids) > 0 {
		n := min(len(ids), deleteBatch)
		names := []string{name}
		for _, id := range ids[:n] {
			names = append(names, item(name, id))
		}
		ids = ids[n:]
		n, err := change(ctx, x.d, stateOfItems, names, func(found map[string]document) (a attempt[int], err error) {
			s := toSetting(found[name])
			seen := map[string]bool{}
			for _, id := range names[1:] {
				if before, ok := found[id]; !ok || !s.has(before) || seen[id] {
					continue
				}
				seen[id] = true
				s.last, s.count = s.last+1, s.count-1
				a.result++
				a.writes = append(a.writes, write{Update: &document{Name: id, Fields: map[string]value{seqField: integer(s.last), bornField: integer(s.born), goneField: boolean(true)}}})
			}
			if a.result > 0 {
				a.writes = append(a.writes, s.write(name, found[name].UpdateTime))
			}
			return a, nil
		})
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// Drop removes a collection with all its items: first its document, so that all are
// gone for readers, then the items.
func (x *Vectors) Drop(ctx context.Context, collection string) (items int, existed bool, err error) {
	if err := x.closed.check(ctx); err != nil {
		return 0, false, err
	}
	if !vectors.Named(collection) {
		return 0, false, nil
	}
	name := x.collection(collection)
	before, err := change(ctx, x.d, []string{"count"}, []string{name}, func(found map[string]document) (a attempt[*document], err error) {
		if d, ok := found[name]; ok {
			a.result = &d
			a.writes = []write{{Delete: name, CurrentDocument: unchanged(d.UpdateTime)}}
			a.dropped = strings.TrimPrefix(name, x.d.root+"/")
		}
		return a, nil
	})
	if err != nil || before == nil {
		return 0, false, err
	}
	return int(before.Fields["count"].int()), true, x.d.empty(ctx, name, itemsName)
}

// Collections describes all collections.
func (x *Vectors) Collections(ctx context.Context) (all []store.Collection, err error) {
	if err := x.closed.check(ctx); err != nil {
		return nil, err
	}
	err = x.d.all(ctx, "", structured{From: []from{{x.d.prefix + vectorsName}}}, func(d document) bool {
		s := toSetting(d)
		all = append(all, store.Collection{Name: s.name, Dimension: s.dimension, Count: int(s.count)})
		return true
	})
	slices.SortFunc(all, func(a, b store.Collection) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

func toItem(d document) store.VectorItem {
	f := d.Fields
	one := store.VectorItem{ID: f["id"].text(), Text: f["text"].text()}
	if raw, ok := f[metadataField]; ok {
		decoded, err := jsonvalue.Decode([]byte(raw.text()))
		one.Metadata, _ = decoded.(map[string]any)
		one.Damaged = err != nil || one.Metadata == nil
	}
	if raw := f["embedding"].Bytes; len(raw)%4 == 0 && len(raw) > 0 {
		one.Embedding = vectors.Decode(raw)
	}
	return one
}

// Get returns the items with these ids that exist.
func (x *Vectors) Get(ctx context.Context, collection string, ids ...string) (items []store.VectorItem, err error) {
	if err := x.closed.check(ctx); err != nil {
		return nil, err
	}
	if ids = vectors.Storable(ids); !vectors.Named(collection) || len(ids) == 0 {
		return nil, ctx.Err()
	}
	name := x.collection(collection)
	names := []string{name}
	for _, id := range ids {
		names = append(names, item(name, id))
	}
	found, err := x.d.get(ctx, nil, names...)
	if err != nil {
		return nil, fmt.Errorf("read collection %q: %w", collection, err)
	}
	s, ok := found[name]
	for _, id := range names[1:] {
		if d, there := found[id]; ok && there && toSetting(s).has(d) {
			items = append(items, toItem(d))
		}
	}
	return items, nil
}

// has reports whether an item is one of the collection: it was not removed, and it is
// not of a collection with the same name that was dropped.
func (s setting) has(d document) bool { return !isGone(d) && d.Fields[bornField].int() == s.born }

// itemFields are the fields of an item without its embedding.
var itemFields = []string{"id", "text", metadataField, seqField, bornField, goneField}

// List returns the items of a collection in the order of their ids.
func (x *Vectors) List(ctx context.Context, collection string, page store.VectorPage) (items []store.VectorItem, err error) {
	if err := x.closed.check(ctx); err != nil {
		return nil, err
	}
	if page.Limit < 1 || !vectors.Named(collection) {
		return nil, ctx.Err()
	}
	name := x.collection(collection)
	found, err := x.d.get(ctx, nil, name)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	s := toSetting(found[name])
	first, inclusive, _ := whole.bounds("", page.After)
	q := structured{From: []from{{itemsName}}, Limit: min(page.Limit, pageDocuments)}
	if first != "" {
		after := name + "/" + itemsName + "/" + first
		op := "GREATER_THAN"
		if inclusive {
			op = "GREATER_THAN_OR_EQUAL"
		}
		q.Where = &filterOf{FieldFilter: &fieldFilter{field{nameField}, op, value{Reference: &after}}}
	}
	if !page.Embeddings {
		q.Select = selected(itemFields)
	}
	g := grouped[store.VectorItem]{key: func(i *store.VectorItem) string { return i.ID }, use: func(i *store.VectorItem) (bool, error) {
		if strings.Compare(i.ID, page.After) > 0 {
			items = append(items, *i)
		}
		return len(items) < page.Limit, nil
	}}
	err = x.d.all(ctx, name, q, func(d document) bool {
		if !s.has(d) {
			return true
		}
		one := toItem(d)
		return g.take(whole, &one)
	})
	if err == nil && !g.ended {
		g.flush()
	}
	return items, err
}

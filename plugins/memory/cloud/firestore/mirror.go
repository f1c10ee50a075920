package firestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// mirror has the vectors of a collection in memory.
type mirror struct {
	mu    sync.Mutex
	index *vector.Index // nil before the first search, and without a collection
	// setting is that of the collection, as of the last change in the mirror.
	setting setting
	items   map[int64]store.VectorItem
	numbers map[string]int64 // by the name of the document
	next    int64
}

// drop removes all vectors.
func (m *mirror) drop() {
	if m.index != nil {
		_ = m.index.Close() // it has no file
	}
	m.index, m.items, m.numbers, m.next, m.setting = nil, nil, nil, 0, setting{}
}

// mirror returns the mirror of a collection.
func (x *Vectors) mirror(collection string) *mirror {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.mirrors[collection]
	if m == nil {
		m = &mirror{}
		x.mirrors[collection] = m
	}
	return m
}

// Search returns the items nearest to the query.
func (x *Vectors) Search(ctx context.Context, collection string, q store.VectorQuery) ([]store.VectorHit, error) {
	if err := x.closed.check(ctx); err != nil {
		return nil, err
	}
	if q.K < 1 || !vectors.Named(collection) {
		return nil, ctx.Err()
	}
	if len(q.Embedding) > 0 && !slices.ContainsFunc(q.Embedding, func(f float32) bool { return f != 0 }) {
		return nil, tea.Errorf(tea.ValidationError, "the embedding of the query is all zeros, which are similar to nothing")
	}
	m := x.mirror(collection)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := x.refresh(ctx, collection, m); err != nil {
		m.drop() // a part of the changes can be missing
		return nil, fmt.Errorf("read collection %q: %w", collection, err)
	}
	if m.index == nil {
		return nil, nil
	}
	options := vector.SearchOptions{Exact: true}
	if len(q.Filter) > 0 {
		options.Among = []int64{}
		for id, one := range m.items {
			if q.Filter.MatchesObject(one.Metadata) {
				options.Among = append(options.Among, id)
			}
		}
		slices.Sort(options.Among)
	}
	hits, err := m.index.Search(ctx, q.Embedding, q.K, options)
	switch {
	case errors.Is(err, vector.ErrDimension):
		return nil, vectors.WrongDimension(collection, len(q.Embedding), m.setting.dimension)
	case errors.Is(err, vector.ErrNotFinite):
		return nil, tea.Errorf(tea.ValidationError, "the embedding of the query: %w", err)
	case err != nil:
		return nil, fmt.Errorf("search collection %q: %w", collection, err)
	}
	var found []store.VectorHit
	for _, hit := range hits {
		if float64(hit.Similarity) < q.MinScore {
			continue
		}
		one := m.items[hit.ID]
		if !q.Embeddings {
			one.Embedding = nil
		}
		found = append(found, store.VectorHit{VectorItem: one, Score: float64(hit.Similarity)})
	}
	return found, nil
}

// refresh reads the changes after those of the mirror. The collection and its changes
// are of one snapshot.
func (x *Vectors) refresh(ctx context.Context, collection string, m *mirror) error {
	name := x.collection(collection)
	found, err := x.d.get(ctx, nil, name)
	if err != nil {
		return err
	}
	d, ok := found[name]
	if !ok {
		m.drop()
		return nil
	}
	s := toSetting(d)
	if m.index != nil && (m.setting.born != s.born || m.setting.dimension != s.dimension || m.setting.last > s.last || m.setting.last < s.last-keepGone) {
		m.drop()
	}
	if m.index == nil {
		m.setting = setting{born: s.born, dimension: s.dimension}
		m.items, m.numbers = map[int64]store.VectorItem{}, map[string]int64{}
		if m.index, err = vector.Open("", vector.Options{Dimension: s.dimension}); err != nil {
			return err
		}
	}
	for m.setting.last < s.last {
		q := structured{
			From: []from{{itemsName}}, OrderBy: []order{{field{seqField}}},
			Where: &filterOf{FieldFilter: &fieldFilter{field{seqField}, "GREATER_THAN", integer(m.setting.last)}},
		}
		p, err := x.d.query(ctx, name, q, "")
		if err != nil {
			return err
		}
		for _, d := range p.documents {
			if err := m.apply(d); err != nil {
				return err
			}
		}
		if !p.more {
			m.setting.last = max(m.setting.last, s.last)
		}
	}
	return nil
}

// apply applies a change.
func (m *mirror) apply(d document) error {
	seq := d.Fields[seqField].int()
	m.setting.last = seq
	id, ok := m.numbers[d.Name]
	one := toItem(d)
	if !m.setting.has(d) || len(one.Embedding) != m.setting.dimension {
		if !ok {
			return nil // an item of another collection, or one that was never seen
		}
		delete(m.items, id)
		delete(m.numbers, d.Name)
		return m.index.Delete(id, seq)
	}
	if !ok {
		m.next++
		id = m.next
		m.numbers[d.Name] = id
	}
	m.items[id] = one
	return m.index.Put(id, seq, one.Embedding)
}

package exact

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"sync"
	"unique"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Vectors holds the embeddings of a database in memory: an [Index] that the first
// search loads and that follows the commits. K are the keys of entities, T the tags by
// which a search selects them. The zero value is empty. It is safe for concurrent
// use.
type Vectors[K, T comparable] struct {
	mu        sync.RWMutex
	dimension int
	largest   int
	index     *Index[K, T]
}

// Change stores an embedding, or removes it if Vector is nil.
type Change[K, T comparable] struct {
	Key    K
	Tag    T
	Vector []float32
}

// Reset sets the dimension of the database's embeddings, 0 if there are none, and
// the maximum size of the index in bytes. The next search loads the embeddings; if
// they exceed the size, each search reads them from the disk.
func (v *Vectors[K, T]) Reset(dimension, largest int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dimension, v.largest, v.index = dimension, largest, nil
}

// Forget makes the next search reload the embeddings.
func (v *Vectors[K, T]) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.index = nil
}

// Dimension returns the dimension of the embeddings; 0 if there are none.
func (v *Vectors[K, T]) Dimension() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.dimension
}

// Commit calls commit and then applies the dimension and the changes. No search sees
// one without the other.
func (v *Vectors[K, T]) Commit(dimension int, changes iter.Seq[Change[K, T]], commit func() error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := commit(); err != nil {
		v.index = nil // the commit may have taken place
		return err
	}
	v.dimension = dimension
	if v.index == nil {
		return nil
	}
	for c := range changes {
		if c.Vector == nil {
			v.index.Delete(c.Key)
		} else {
			v.index.Put(c.Key, c.Tag, c.Vector)
		}
	}
	if v.index.Len()*v.dimension > v.largest {
		v.index = nil
	}
	return nil
}

// Candidates returns the keys of the embeddings to compare with a query. They include
// the most similar ones whose tag is kept. load calls put with all embeddings of the
// database, and returns false if there are more than room; then Candidates returns
// false, and the caller must compare all embeddings.
func (v *Vectors[K, T]) Candidates(q store.VectorQuery, keep func(T) bool, load func(room int, put func(K, T, []float32)) (bool, error)) ([]K, bool, error) {
	for {
		if keys, loaded := v.find(q, keep); loaded {
			return keys, true, nil
		}
		if complete, err := v.load(load); !complete || err != nil {
			return nil, false, err
		}
	}
}

// find searches the index; false if it is not loaded.
func (v *Vectors[K, T]) find(q store.VectorQuery, keep func(T) bool) (keys []K, loaded bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch {
	case v.dimension != len(q.Embedding):
		return nil, true
	case v.index == nil:
		return nil, false
	}
	return v.index.Candidates(q.Embedding, q.Limit, keep), true
}

func (v *Vectors[K, T]) load(load func(room int, put func(K, T, []float32)) (bool, error)) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.index != nil || v.dimension == 0 {
		return true, nil
	}
	index := New[K, T](v.dimension)
	complete, err := load(v.largest/v.dimension, index.Put)
	if complete && err == nil {
		v.index = index
	}
	return complete, err
}

// Name is the key of an entity in a database with text keys.
type Name struct{ Namespace, ID string }

// Type is the tag of an entity with a [Name].
type Type struct{ Namespace, Type string }

// Named returns the key and the tag of an entity. Equal namespaces and types share
// their memory.
func Named(namespace, id, kind string) (Name, Type) {
	namespace = unique.Make(namespace).Value()
	return Name{namespace, id}, Type{namespace, unique.Make(kind).Value()}
}

// Changes returns the changes of a batch.
func Changes(namespace string, b store.Batch) iter.Seq[Change[Name, Type]] {
	return func(yield func(Change[Name, Type]) bool) {
		for _, id := range b.DeleteEntities {
			if !yield(Change[Name, Type]{Key: Name{namespace, id}}) {
				return
			}
		}
		for i := range b.Entities {
			e := &b.Entities[i]
			name, kind := Named(namespace, e.ID, e.Type)
			if !yield(Change[Name, Type]{name, kind, e.Embedding}) {
				return
			}
		}
	}
}

// In returns a filter for the tags of entities that a query selects.
func In(namespace string, q store.VectorQuery) func(Type) bool {
	return func(t Type) bool {
		return t.Namespace == namespace && (len(q.Types) == 0 || slices.Contains(q.Types, t.Type))
	}
}

// Best collects the entities whose full embeddings are most similar to a query.
type Best struct {
	Query store.VectorQuery
	hits  []hit
}

type hit struct {
	id    string
	score float64
}

// Add compares an entity with the query.
func (b *Best) Add(id string, vector []float32) {
	if len(vector) != len(b.Query.Embedding) {
		return
	}
	b.hits = append(b.hits, hit{id, store.Cosine(b.Query.Embedding, vector)})
	if len(b.hits) >= 4*b.Query.Limit+1000 {
		b.cut()
	}
}

func (b *Best) cut() {
	slices.SortFunc(b.hits, func(x, y hit) int { return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.id, y.id)) })
	b.hits = b.hits[:min(len(b.hits), b.Query.Limit)]
}

// IDs returns the best entities, most similar first.
func (b *Best) IDs() []string {
	b.cut()
	ids := make([]string, len(b.hits))
	for i, h := range b.hits {
		ids[i] = h.id
	}
	return ids
}

// ToBlob returns an embedding as bytes.
func ToBlob(v []float32) []byte {
	blob := make([]byte, 0, 4*len(v))
	for _, f := range v {
		blob = binary.LittleEndian.AppendUint32(blob, math.Float32bits(f))
	}
	return blob
}

// FromBlob returns the embedding of [ToBlob]; nil for no bytes.
func FromBlob(blob []byte) []float32 {
	if len(blob) == 0 {
		return nil
	}
	v := make([]float32, len(blob)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(blob[4*i:]))
	}
	return v
}

package store

import (
	"math"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// DimensionError is the error of Apply for an embedding with another dimension than
// the database's.
func DimensionError(id string, has, needs int) error {
	return tea.Errorf(tea.ValidationError, "the embedding of %q has %d dimensions, and the embeddings of this graph have %d; use one embedding model for a graph", id, has, needs)
}

// DimensionAfter returns the dimension of a database's embeddings after storing the
// entities; has is the dimension before it, 0 if there are none. The error is a
// [DimensionError].
func DimensionAfter(has int, entities []Entity) (int, error) {
	for i := range entities {
		switch n := len(entities[i].Embedding); {
		case n == 0 || n == has:
		case has == 0:
			has = n
		default:
			return 0, DimensionError(entities[i].ID, n, has)
		}
	}
	return has, nil
}

// Cosine returns the similarity of two vectors of the same length, from -1 to 1;
// 0 if one of them is zero.
func Cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return max(-1, min(1, dot/math.Sqrt(aa*bb)))
}

// The values of the member "kind" of objects in a [Table].
const (
	KindEntity   = "entity"
	KindRelation = "relation"
	KindPath     = "path"
	// Kinds of [Other].
	KindNode         = "node"
	KindRelationship = "relationship"
)

// Node is an entity in a [Table].
func Node(id, kind string, properties map[string]any) map[string]any {
	return map[string]any{"kind": KindEntity, "id": id, "type": kind, "properties": properties}
}

// Edge is a relation in a [Table].
func Edge(from, kind, to string, properties map[string]any) map[string]any {
	return map[string]any{"kind": KindRelation, "from": from, "type": kind, "to": to, "properties": properties}
}

// Other is a node or relationship in a [Table] that does not belong to the graph, but to
// a table that a query has created, with its columns.
func Other(kind, label string, columns map[string]any) map[string]any {
	return map[string]any{"kind": kind, "label": label, "properties": columns}
}

// Number returns a number in a query's result, or an error for one that JSON cannot
// represent.
func Number(f float64) (any, error) {
	switch {
	case math.IsNaN(f):
		return nil, tea.Errorf(tea.QueryError, "the query returns a result that is not a number, such as 0.0/0.0, which JSON cannot represent")
	case math.IsInf(f, 0):
		return nil, tea.Errorf(tea.QueryError, "the query returns an infinite number, which JSON cannot represent")
	}
	return f, nil
}

// Path is a path in a [Table]: n entities and the n-1 relations between them.
func Path(entities, relations []any) map[string]any {
	return map[string]any{"kind": KindPath, "entities": entities, "relations": relations}
}

// Compare orders relation keys by From, Type, To and ValidFrom.
func (k RelationKey) Compare(other RelationKey) int {
	for _, c := range [...]int{strings.Compare(k.From, other.From), strings.Compare(k.Type, other.Type), strings.Compare(k.To, other.To)} {
		if c != 0 {
			return c
		}
	}
	switch {
	case k.ValidFrom < other.ValidFrom:
		return -1
	case k.ValidFrom > other.ValidFrom:
		return 1
	}
	return 0
}

// Valid reports whether the relation is valid at an instant.
func (r *Relation) Valid(at int64) bool { return r.ValidFrom <= at && at < r.ValidTo }

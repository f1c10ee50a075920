package store

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/memory/internal/filter"
)

// VectorIndex keeps vectors with texts and metadata in collections and finds
// those next to a given one. What Store and Delete have acknowledged survives
// a crash, and the next Search sees it.
//
// The name of a collection has 1 to 100 bytes of UTF-8, an id 1 to 4,096; both
// are compared byte by byte. What is no name is refused by Store with a
// validation_error; elsewhere it is one that is not there. After Close every
// call fails with a connection_error; one whose context has ended fails with
// the context's error, or has done its work.
//
// Implementations are safe for concurrent use.
type VectorIndex interface {
	// Store writes the items atomically; an item replaces the stored one with
	// the same id. The first item of a collection sets its dimension. It is a
	// validation_error if an embedding has another dimension, a number that is
	// not finite or zeros only, and if two items have the same id. No items are
	// no error and create no collection.
	Store(ctx context.Context, collection string, items ...VectorItem) error
	// Delete removes items and says how many there were. A collection stays,
	// with its dimension, when its last item goes.
	Delete(ctx context.Context, collection string, ids ...string) (int, error)
	// Search gives the items nearest to the query by cosine similarity, the
	// nearest first. An embedding of another dimension or of zeros is a
	// validation_error. A collection that does not exist has no items.
	Search(ctx context.Context, collection string, query VectorQuery) ([]VectorHit, error)
	// Get gives the items under these ids that are there, in that order.
	Get(ctx context.Context, collection string, ids ...string) ([]VectorItem, error)
	// List returns the items of a collection in the order of their ids' bytes.
	List(ctx context.Context, collection string, page VectorPage) ([]VectorItem, error)
	// Drop removes a collection with all its items and returns how many there
	// were. It reports whether the collection existed.
	Drop(ctx context.Context, collection string) (items int, existed bool, err error)
	// Collections describes what there is, in the order of the names' bytes.
	Collections(ctx context.Context) ([]Collection, error)
	// Close ends background work and writes what makes the next start fast.
	Close() error
}

// VectorItem is a vector and what it stands for.
type VectorItem struct {
	ID        string
	Text      string
	Embedding []float32
	// Metadata is an object of the value model, or nil.
	Metadata map[string]any
}

// VectorQuery asks for the K items nearest to Embedding; none where K is
// below 1.
type VectorQuery struct {
	Embedding []float32
	K         int
	// Filter restricts to items whose metadata fits it. It loses no results.
	Filter filter.Filter
	// MinScore leaves out what is less similar.
	MinScore float64
	// Exact compares with every vector, whatever the size.
	Exact bool
	// Embeddings asks for the embeddings of the hits.
	Embeddings bool
}

// VectorPage selects items in the order of their ids.
type VectorPage struct {
	// After is the id after which the items begin.
	After string
	// Limit is the largest number of items; none if it is below 1.
	Limit int
	// Embeddings asks for the embeddings.
	Embeddings bool
}

// VectorHit is an item and its cosine similarity to the query, from -1 to 1.
type VectorHit struct {
	VectorItem
	Score float64
}

// Collection describes a set of vectors of one dimension.
type Collection struct {
	Name      string
	Dimension int
	Count     int
}

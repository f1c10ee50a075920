package store

import (
	"context"

	"github.com/the-edge-agent/tea/sdk/x/filter"
)

// VectorIndex stores vectors with texts and metadata in collections and finds the
// nearest ones to a given vector. Acknowledged changes survive a crash, and the
// next Search sees them.
//
// The name of a collection has 1 to 100 bytes of UTF-8, an id 1 to 4,096; both
// are compared byte by byte. Store refuses invalid names with a validation_error;
// other calls treat them as names that do not exist. After Close every call fails
// with a connection_error. A call whose context has ended fails with the
// context's error or succeeds.
//
// Implementations are safe for concurrent use.
type VectorIndex interface {
	// Store writes the items atomically; an item replaces the stored item with the
	// same id. The first item of a collection sets its dimension. An embedding with
	// another dimension, with a number that is not finite or with only zeros is a
	// validation_error, and so are two items with the same id. Without items it
	// does nothing.
	Store(ctx context.Context, collection string, items ...VectorItem) error
	// Delete removes items and returns how many existed. An empty collection still
	// exists, with its dimension.
	Delete(ctx context.Context, collection string, ids ...string) (int, error)
	// Search returns the items nearest to the query by cosine similarity, the
	// nearest first. An embedding of another dimension or of zeros is a
	// validation_error. A collection that does not exist has no items.
	Search(ctx context.Context, collection string, query VectorQuery) ([]VectorHit, error)
	// Get returns the existing items with these ids, in the order of the ids.
	Get(ctx context.Context, collection string, ids ...string) ([]VectorItem, error)
	// List returns the items of a collection in the order of their ids' bytes.
	List(ctx context.Context, collection string, page VectorPage) ([]VectorItem, error)
	// Drop removes a collection with all its items, and returns the number of items
	// and whether the collection existed.
	Drop(ctx context.Context, collection string) (items int, existed bool, err error)
	// Collections describes all collections, in the order of the names' bytes.
	Collections(ctx context.Context) ([]Collection, error)
	// Close ends background work and writes files that make the next start fast.
	Close() error
}

// VectorItem is a vector with its text and metadata.
type VectorItem struct {
	ID        string
	Text      string
	Embedding []float32
	// Metadata is an object of the value model, or nil.
	Metadata map[string]any
	// Damaged reports whether the metadata in the database cannot be read.
	Damaged bool
}

// VectorQuery selects the K items nearest to Embedding; there are none if K is
// below 1.
type VectorQuery struct {
	Embedding []float32
	K         int
	// Filter restricts the items by their metadata. There are K results if K items
	// match it.
	Filter filter.Filter
	// MinScore is the lowest score of a result.
	MinScore float64
	// Exact requests an exact scan.
	Exact bool
	// Embeddings includes the embeddings in the results.
	Embeddings bool
}

// VectorPage selects items in the order of their ids.
type VectorPage struct {
	// After is the id after which the items begin.
	After string
	// Limit bounds the number of items; there are none if it is below 1.
	Limit int
	// Embeddings includes the embeddings.
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

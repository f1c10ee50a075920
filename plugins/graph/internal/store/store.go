package store

import (
	"context"
	"math"
)

// Always and Forever bound a fact without a beginning or an end. Instants are
// microseconds since 1970 in UTC. A fact is valid from ValidFrom until before
// ValidTo.
const (
	Always  int64 = math.MinInt64
	Forever int64 = math.MaxInt64
)

// Entity is a node of the graph. Its key is the namespace and the ID.
type Entity struct {
	ID   string
	Type string
	// Properties is the JSON text of an object.
	Properties []byte
	Text       string
	// Words are the distinct words by which full-text search finds the entity:
	// letters and digits in lower case. They are written, but not returned.
	Words []string
	// Embedding is nil if there is none. All embeddings of a database have the same
	// dimension; see [DimensionError].
	Embedding []float32
	// Facts is opaque JSON text of the entity; "" if there is none.
	Facts  string
	Source string
	// CreatedAt and UpdatedAt are instants.
	CreatedAt, UpdatedAt int64
}

// RelationKey identifies a relation within a namespace.
type RelationKey struct {
	From, Type, To string
	// ValidFrom is an instant or [Always].
	ValidFrom int64
}

// Relation is a directed edge. Its ends need not exist as entities.
type Relation struct {
	RelationKey
	// ValidTo is an instant or [Forever].
	ValidTo int64
	// Properties is the JSON text of an object.
	Properties []byte
	Weight     float64
	Source     string
	// CreatedAt and UpdatedAt are instants.
	CreatedAt, UpdatedAt int64
}

// Batch is a set of changes of one namespace. Deletions come first.
type Batch struct {
	DeleteEntities  []string
	DeleteRelations []RelationKey
	// Entities and Relations replace those with the same key. A key appears at most
	// once.
	Entities  []Entity
	Relations []Relation
}

// Direction is the direction in which relations are followed.
type Direction int

// The directions.
const (
	Out Direction = iota
	In
	Both
)

// Adjacency selects the relations of some entities.
type Adjacency struct {
	IDs       []string
	Direction Direction
	// Types are the types of the relations; empty selects all.
	Types []string
	// At selects the relations that are valid at this instant, unless Ever is set.
	At   int64
	Ever bool
	// Lean asks for keys, ValidTo and weights only; other fields may be missing.
	Lean bool
	// Max is the number of relations above which the backend stops.
	Max int
}

// EntityScan selects entities.
type EntityScan struct {
	// Types are the types of the entities; empty selects all.
	Types []string
	// After is the ID after which the scan starts; "" starts at the beginning.
	After string
	// Embeddings and Facts ask for these fields, which are otherwise omitted.
	Embeddings, Facts bool
	// Keys asks for IDs and types only; other fields may be missing.
	Keys bool
}

// RelationScan selects relations.
type RelationScan struct {
	// Types, At, Ever and Lean are as in [Adjacency].
	Types []string
	At    int64
	Ever  bool
	Lean  bool
}

// TextQuery is a full-text search.
type TextQuery struct {
	// Words are in the form of [Entity.Words]. An entity matches if it has one of
	// them.
	Words []string
	// Types are the types of the entities; empty selects all.
	Types []string
	Limit int
	// Enough is the number of results above which entities are not added if they
	// only have words that more than Limit entities have.
	Enough int
}

// VectorQuery is a search by cosine similarity.
type VectorQuery struct {
	Embedding []float32
	// Types are the types of the entities; empty selects all.
	Types []string
	Limit int
}

// Stats describe the contents of a namespace.
type Stats struct {
	Entities, Relations, Embeddings int64
	// EntityTypes and RelationTypes count entities and relations by type.
	EntityTypes, RelationTypes map[string]int64
	// Namespaces are all namespaces of the database, sorted.
	Namespaces []string
	// Dimension is the dimension of the database's embeddings; 0 if there are none.
	Dimension int
}

// Store is an open database. It is safe for concurrent use, except that the caller
// makes one call of Apply at a time. Concurrent reads see a batch completely or not
// at all. All errors are *tea.Error values or errors of the context. A canceled call
// returns within a second. The caller owns the result of a call. Texts are ordered by
// their bytes.
type Store interface {
	// Apply applies a batch and updates the search indexes atomically. When it
	// returns nil, the batch is durable.
	Apply(ctx context.Context, namespace string, b Batch) error
	// Entities returns the existing entities with these IDs, in the order of ids.
	// Embeddings and facts are omitted unless o asks for them.
	Entities(ctx context.Context, namespace string, ids []string, o Fields) ([]Entity, error)
	// Adjacent returns the relations of the entities, each once, in any order. If
	// there are more than a.Max it returns a.Max+1 of them.
	Adjacent(ctx context.Context, namespace string, a Adjacency) ([]Relation, error)
	// Between returns the relations with From, Type and To of one of the keys, valid
	// at any time, each once, in any order.
	Between(ctx context.Context, namespace string, keys []RelationKey) ([]Relation, error)
	// EachEntity calls f with entities in the order of their IDs until f returns an
	// error, which it returns. f must not call the store.
	EachEntity(ctx context.Context, namespace string, s EntityScan, f func(*Entity) error) error
	// EachRelation calls f with relations in the order of From, Type, To and
	// ValidFrom, as EachEntity does.
	EachRelation(ctx context.Context, namespace string, s RelationScan, f func(*Relation) error) error
	// Search returns the IDs of the best entities that have one of the words, in the
	// backend's ranking. The caller ranks them again.
	Search(ctx context.Context, namespace string, q TextQuery) ([]string, error)
	// Nearest returns the IDs of the entities with the most similar embeddings, most
	// similar first, ties in the order of IDs. An embedding of another dimension has
	// no results.
	Nearest(ctx context.Context, namespace string, q VectorQuery) ([]string, error)
	// Dimension returns the dimension of the embeddings; 0 if there are none.
	Dimension(ctx context.Context) (int, error)
	// Stats describes a namespace.
	Stats(ctx context.Context, namespace string) (Stats, error)
	// Backup writes a consistent copy of the database into an existing empty
	// folder, for Open. Writes may continue meanwhile.
	Backup(ctx context.Context, dir string) error
	// Close waits for running calls and closes the database.
	Close() error
}

// Fields are expensive fields of entities, which are returned on request.
type Fields struct{ Embeddings, Facts bool }

// Querier is a Store with a query language.
type Querier interface {
	// Language is the name of the language and of graph.query's parameter: datalog
	// or cypher.
	Language() string
	// Query runs a query. With ReadOnly it refuses a query that would change data,
	// before it runs.
	Query(ctx context.Context, q Query) (*Table, error)
}

// Verifier is a Store whose Open does not verify a checksum of the files.
type Verifier interface {
	// Verify reads the whole database and returns an error if a part of it is missing or
	// unreadable. It does not detect a changed letter in a text.
	Verify(ctx context.Context) error
}

// Query is a query in the language of a backend.
type Query struct {
	Text string
	// Params are values of package sdk/value. They are bound, never spliced.
	Params   map[string]any
	ReadOnly bool
	// MaxRows is the number of rows above which the backend stops.
	MaxRows int
}

// Table is the result of a query, with values of package sdk/value. Nodes,
// relationships and paths are objects made by [Node], [Edge], [Other] and [Path].
type Table struct {
	Columns []string
	Rows    [][]any
	// Truncated reports whether there were more than MaxRows rows.
	Truncated bool
}

// Options are the options for opening a database.
type Options struct {
	// Dir is the folder of the database, which exists and is locked by this process.
	// It also has files of the graph: graph.json and owner.lock.
	Dir string
	// Create reports whether the database is new, or that an earlier creation may have
	// been interrupted. Otherwise a missing database is an error.
	Create bool
	// MemoryBytes bounds the database's buffers; 0 is the backend's default.
	MemoryBytes int64
	// Verify asks for a check of the whole database if the backend supports it.
	Verify bool
	// Threads bounds the threads of a query; 0 is the backend's default.
	Threads int
}

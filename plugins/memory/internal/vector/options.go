package vector

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
)

// Errors of Put, Delete, Search and Flush. A failed call has changed nothing.
var (
	// ErrDimension means that the length of a vector differs from the collection's.
	ErrDimension = errors.New("wrong dimension")
	// ErrNotFinite means that an element of a vector is NaN or infinite.
	ErrNotFinite = errors.New("not a finite number")
	// ErrZero means that a vector to store has no direction. The owner of such a
	// row calls Delete with the same sequence number instead.
	ErrZero = errors.New("vector of zeros")
	// ErrSequence means that a change is not newer than the watermark.
	ErrSequence = errors.New("sequence number not after the watermark")
	// ErrFull means that the index holds as many vectors as it can address.
	ErrFull = errors.New("index is full")
	// ErrDamaged means that a part of the file that was read later is damaged. The
	// owner calls Reset and repeats all changes.
	ErrDamaged = errors.New("the file is damaged")
	// ErrClosed means that the index was closed.
	ErrClosed = errors.New("index is closed")
)

// The limits of Options.
const (
	maxDimension = 1 << 16
	maxM         = 256
)

// Options configure an Index. Only Dimension is required.
type Options struct {
	// Dimension is the length of every vector, at most 65,536.
	Dimension int
	// Owner identifies the rows, such as the identity of their database. A file
	// written for another owner is not used.
	Owner string
	// Exact is the largest number of vectors for which every search is an exact scan
	// and no graph is built: 10,000 if zero, none if negative.
	Exact int
	// M is the number of links of a vector in each layer of the graph, twice as
	// many in the lowest: 16 if zero. If the M of the file differs, its graph is
	// built again.
	M int
	// EfConstruction is the number of candidates for those links: 100 if zero.
	EfConstruction int
	// EfSearch is the number of candidates that a search in the graph keeps, at
	// least k: 64 if zero. More candidates improve the recall and take longer.
	EfSearch int
	// Logger logs background work. It may be nil.
	Logger *slog.Logger

	// builders is the number of goroutines that build the graph: if zero, one for
	// each core except one. The graph does not depend on it.
	builders int
}

// withDefaults sets defaults for zero fields and checks the others.
func (o Options) withDefaults() (Options, error) {
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	fill(&o.Exact, 10_000)
	fill(&o.M, 16)
	fill(&o.EfConstruction, 100)
	fill(&o.EfSearch, 64)
	fill(&o.builders, max(1, runtime.GOMAXPROCS(0)-1))
	o.Exact = max(o.Exact, 0)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Dimension < 1 || o.Dimension > maxDimension:
		return o, fmt.Errorf("dimension %d is not between 1 and %d", o.Dimension, maxDimension)
	case o.M < 2 || o.M > maxM:
		return o, fmt.Errorf("number of links M = %d is not between 2 and %d", o.M, maxM)
	case o.EfConstruction < 1 || o.EfSearch < 1:
		return o, fmt.Errorf("EfConstruction %d or EfSearch %d is below 1", o.EfConstruction, o.EfSearch)
	}
	return o, nil
}

// SearchOptions change one search. The zero value is a normal search.
type SearchOptions struct {
	// Among restricts the search to vectors with these ids, unless it is nil. It
	// never reduces recall: the more it excludes, the larger the part of the rest
	// that is scanned.
	Among []int64
	// Exact requests an exact scan.
	Exact bool
	// Ef replaces Options.EfSearch if it is not zero.
	Ef int
}

// Hit is a vector that was found.
type Hit struct {
	ID int64
	// Similarity is the cosine of the angle between query and vector, from -1
	// to 1; it is 0 if the query is all zeros.
	Similarity float32
}

// Stats describes the state of an index.
type Stats struct {
	// Vectors is the number of live vectors.
	Vectors int
	// Tombstones is the number of deleted or replaced vectors that still take
	// memory.
	Tombstones int
	// Graphed is the number of vectors and tombstones in the graph.
	Graphed int
	// Watermark is the sequence number of the last change.
	Watermark int64
	// Flushed is the sequence number of the last change in the file.
	Flushed int64
	// Generation counts how often tombstones were removed.
	Generation int
}

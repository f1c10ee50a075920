package vector

import (
	"fmt"
	"log/slog"
	"math"
)

// The limits of Options.
const (
	maxDimension = 1 << 16
	maxM         = 256
)

// Options say what an index holds and how it searches. All but Dimension may
// be left zero.
type Options struct {
	// Dimension is the length of every vector, at most 65,536.
	Dimension int
	// Owner names what the rows are: say, the database's identity and the
	// model that made the vectors. A file written under another name is not
	// used.
	Owner string
	// Exact is the number of vectors up to which every search compares all of
	// them and no graph is built: 10,000 if zero, none if negative.
	Exact int
	// M is the number of links that a vector gets in the graph, and half of
	// what it may have in the lowest layer: 16 if zero. More finds more in
	// vectors without structure, and costs memory and time. A graph in the
	// file that was built with another M is built anew.
	M int
	// EfConstruction is how many candidates are looked at for those links:
	// 100 if zero.
	EfConstruction int
	// EfSearch is how many candidates a search in the graph keeps unless
	// SearchOptions say otherwise. More finds more and takes longer. If zero,
	// the index finds out how many it takes for the Recall.
	EfSearch int
	// Recall is which part of the k nearest vectors a search in the graph must
	// find on average, from 0.5 to 1: 0.95 if zero. Where the graph cannot do
	// that for less than comparing everything costs, everything is compared,
	// and for 1 no graph is built. It means nothing where there is an EfSearch.
	Recall float64
	// Logger is told what happens in the background; nil for nobody.
	Logger *slog.Logger
}

// withDefaults fills in what was left zero and checks the rest.
func (o Options) withDefaults() (Options, error) {
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	fill(&o.Exact, 10_000)
	fill(&o.M, 16)
	fill(&o.EfConstruction, 100)
	if o.Recall == 0 {
		o.Recall = 0.95
	}
	o.Exact = max(o.Exact, 0)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Dimension < 1 || o.Dimension > maxDimension {
		return o, fmt.Errorf("dimension %d is not in 1..%d", o.Dimension, maxDimension)
	}
	if o.M < 2 || o.M > maxM {
		return o, fmt.Errorf("links per vector, M = %d, are not in 2..%d", o.M, maxM)
	}
	if o.EfConstruction < 1 || o.EfSearch < 0 {
		return o, fmt.Errorf("EfConstruction %d is below 1 or EfSearch %d below 0", o.EfConstruction, o.EfSearch)
	}
	if math.IsNaN(o.Recall) || o.Recall < 0.5 || o.Recall > 1 {
		return o, fmt.Errorf("recall %v is not in 0.5..1", o.Recall)
	}
	if o.Recall == 1 && o.EfSearch == 0 {
		o.Exact = math.MaxInt // no measurement promises so much
	}
	return o, nil
}

// SearchOptions change one search. The zero value is an ordinary one.
type SearchOptions struct {
	// Accept, if set, says which vectors may be found. It is called by the
	// goroutine that called Search, in no particular order and maybe more
	// than once for an id, with no lock held. A filter loses nothing: where
	// the graph would, everything accepted is compared.
	Accept func(id int64) bool
	// Exact compares the query with every vector even where there is a graph.
	Exact bool
	// Ef replaces Options.EfSearch and Options.Recall if it is not zero. It is
	// raised to k.
	Ef int
}

// Hit is one vector that was found.
type Hit struct {
	ID int64
	// Similarity is the cosine of the angle between query and vector, in
	// -1..1; it is 0 for all vectors if the query is all zeros.
	Similarity float32
}

// Stats says what an index holds.
type Stats struct {
	// Vectors is the number of vectors that can be found.
	Vectors int
	// Tombstones is the number of deleted or replaced vectors that still take
	// room.
	Tombstones int
	// Graphed is how many of both have been put in the graph; the others are
	// compared one by one.
	Graphed int
	// Watermark is the sequence number of the last change.
	Watermark int64
	// Flushed is the sequence number of the last change that is in the file.
	Flushed int64
	// Generation counts how often tombstones were cleared away.
	Generation int
	// Measured says how much the searches in the graph find, for each kind of
	// them; empty where all are exact or Options.EfSearch is set.
	Measured []Measured
}

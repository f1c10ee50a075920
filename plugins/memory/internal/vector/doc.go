// Package vector keeps the vectors of one collection in memory and finds those
// nearest to a query by cosine similarity.
//
// Start with [Open]. An [Index] is the rebuildable companion of rows in a
// database: the rows are the truth, and the one process that owns them tells
// the index of every change by [Index.Put] and [Index.Delete], numbered by a
// sequence that only grows. [Index.Flush] writes a file from which the next
// Open starts; the owner then repeats the changes after [Index.Watermark]. A
// file that is missing, damaged, from a newer program or made for something
// else is no error: the index starts empty, [Index.Discarded] says why, and
// the owner repeats everything.
//
// # How it searches
//
// Up to [Options.Exact] vectors a search compares the query with all of them
// on all cores. Beyond, a goroutine builds an HNSW graph (Malkov and Yashunin,
// 2016) with one core. What is not in the graph yet is still compared one by
// one, so that a vector is found from the moment Put returns, whatever the
// graph has come to, also after a crash.
//
// A deleted or replaced vector leaves a tombstone that searches step over.
// When more than a quarter are tombstones, the goroutine copies what is left
// to a new generation, and mends the graph around the gaps. Until it is done
// both take memory.
//
// # How much it finds
//
// The graph relies on structure. Where all vectors are about equally far from
// the query, it must be searched widely, or misses some of the nearest: for
// random noise of many dimensions, and for a query that is like nothing in the
// collection. So the index measures what it finds ([Options.Recall]): the
// first searches of a graph compare everything, and look at how many
// candidates the graph would have given the same result. Once enough are known
// it answers alone, with as many candidates as were needed; now and then a
// search is measured again. Where comparing everything is cheaper than what
// the graph needs, that is done, and said once in the log.
//
// Searches are told apart by how similar their last hit is and their first:
// near ones take the short way even if others, to which nothing is near, are
// compared with everything. What was learned is in [Stats], and forgotten when the graph has
// grown by half, when tombstones were cleared away, and at the end: it costs
// a few exact searches to learn. The benchmarks of this package print what is
// found beside the time it takes.
//
// # What it takes
//
// A vector takes 4 bytes for each dimension (rounded up to a multiple of four)
// and about 70 for its id and place; in the graph about 9*M more, and 24 for
// the layers above. The file is about as large as the memory.
//
// # How it is shared
//
// A search takes a [view] and then needs no lock: a slot (one vector and its
// id) never changes once it is visible, its tombstone carries the number of
// the change that made it, and the links of the graph are single atomic words,
// each of them the name of a valid slot whenever it is read. So neither puts
// nor the building of the graph nor a flush hold up a search, and a search
// sees the collection as it was at one number of the sequence.
//
// The files: index.go and view.go hold that together; scan.go is the exact
// search; graph.go, walk.go, insert.go, select.go and twins.go the HNSW
// graph; search.go and quality.go choose between the two; build.go, compact.go
// and mend.go are what happens in the background; format.go, save.go and
// load.go the companion file.
package vector

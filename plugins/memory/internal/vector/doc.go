// Package vector keeps the vectors of one collection in memory and finds those
// nearest to a query by cosine similarity.
//
// Start with [Open]. An [Index] is the companion of rows in a database, from
// which it can be rebuilt. The one process that owns the rows passes every change
// to [Index.Put] and [Index.Delete], with increasing numbers. [Index.Flush]
// writes a file from which the next Open starts; the owner then repeats the
// changes after [Index.Watermark]. If the file is missing, damaged or belongs to
// another owner, the index starts empty, [Index.Discarded] returns the reason,
// and the owner repeats everything.
//
// # Search
//
// Up to [Options.Exact] vectors, a search is an exact scan. Beyond that, an HNSW
// graph (Malkov and Yashunin, 2016) is built in the background, on all cores but
// one. A search scans the vectors that are not in the graph yet, so that it finds
// a vector as soon as Put returns. The last vectors, fewer than a block of 64, are
// always scanned.
//
// A search in the graph keeps [Options.EfSearch] candidates, which is enough for
// a query that is similar to vectors of the collection. It continues while it
// finds vectors that are hardly farther than the last hit, for other queries and
// for vectors without structure. If it would compare too many, it falls back to
// an exact scan. The benchmarks of this package print time and recall.
//
// A deleted or replaced vector leaves a tombstone. When more than a quarter of
// the slots are tombstones, the goroutine copies the others to a new generation
// and builds its graph. Until then both generations take memory.
//
// # Memory
//
// A vector takes 4 bytes for each dimension, rounded up to a multiple of four,
// and about 70 for its id and place. In the graph it takes about 9*M more. The
// file is about as large as the memory.
//
// # Concurrency
//
// A search takes a [view] and then needs no lock. A slot (one vector and its id)
// never changes once it is visible, its tombstone holds the number of its change,
// and the links of the graph are single atomic words, each of which always names
// a valid slot. So changes, the building of the graph and flushes do not delay
// searches, and a search sees the collection as it was at one number of the
// sequence.
package vector

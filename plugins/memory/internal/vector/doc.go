// Package vector keeps the vectors of one collection in memory and finds those
// nearest to a query by cosine similarity.
//
// Start with [Open]. An [Index] is the companion of rows in a database, from
// which it can be rebuilt. The one process that owns the rows passes every change
// to [Index.Put] and [Index.Delete], with increasing numbers. [Index.Flush]
// writes a file from which the next Open starts; the owner then repeats the
// changes after [Index.Watermark]. If the file is missing, damaged or belongs to
// another owner, the index starts empty, [Index.Discarded] returns the reason,
// and the owner repeats everything. Most of the file is read when it is needed;
// damage that is found then is [ErrDamaged].
//
// # Search
//
// Up to [Options.Exact] vectors, a search is an exact scan. Beyond that, an HNSW
// graph (Malkov and Yashunin, 2016) is built in the background, on all cores but
// one. A search scans the vectors that are not in the graph yet, so that it finds
// a vector as soon as Put returns. The last vectors, fewer than a block of 64, are
// always scanned.
//
// The graph and scans compare codes: a vector as one byte for each dimension. A
// scan compares the vectors themselves unless the codes show that a vector is not
// among the nearest, and so does a search in the graph with its candidates. So
// similarities and exact scans are exact.
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
// A vector takes a byte for each dimension, rounded up to a multiple of 32, and
// about 90 for its id and place. In the graph it takes about 9*M more. Until the
// next Flush it takes 4 bytes more for each dimension; after it, these are read
// from the file, except on Windows. Open reads ids and the higher layers, 12 to 15
// bytes for each vector, and searches read the blocks that they need.
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

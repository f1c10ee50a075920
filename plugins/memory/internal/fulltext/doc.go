// Package fulltext is an incremental full-text index with BM25 ranking. It is
// a companion of rows in a database: the rows are the truth, the index can
// always be built anew from them, and it is never backed up.
//
// Start with [Open], then [Index.Put], [Index.Search], [Index.Flush]. The owner
// numbers its changes; after Open it replays each change whose number is
// greater than [Index.Watermark]. If its own last number is less than that (the
// rows came back from a backup), it calls [Index.Reset] first. A directory that
// is missing, broken, newer or of another language opens empty with watermark
// 0, and [Index.Lost] says why.
//
// # How it works
//
// The index is a row of parts. The newest one is in memory (mem.go) and takes
// every Put; a flush turns it into an immutable segment file (segment.go), and
// merges keep the number of segments logarithmic (merge.go). A document that
// was replaced or deleted is marked dead in the part that holds it (deadset.go);
// the marks are written with the manifest (manifest.go), which names the
// segments that count. A search takes a snapshot of the parts (snapshot.go),
// reads the lists of its terms, and adds up scores (search.go).
//
// Lists are kept per form: a word without accents, followed by its spelling
// where that has a stem of its own. A term is a set of forms: a word stands for
// all forms that share one of its keys (its stem, and its stem without accents),
// a prefix for all forms that begin with it. So prefixes match what a reader
// sees although words are stemmed, and both are exact at any time.
//
// # Words
//
// A word is a run of letters, marks and digits, or a single symbol such as an
// emoji; everything else separates. Texts are normalized to NFKC and lower case,
// words are stemmed as they are spelled, and accents are removed from the stems
// (language.go). Runs of scripts that are written without spaces become pairs of
// characters (analyzer.go).
//
// # Tags
//
// A document may have a tag, and a search may be restricted to one.
//
// # Queries
//
// A query is words, "phrases" and prefixes*. A document matches if it has any
// of the words or prefixes, and all of the phrases. A phrase asks for its words
// next to each other in one field; a stop word in its middle holds a place. The
// words of a phrase count for the score like other words. A prefix is one term:
// its count in a document is the sum, its document frequency the union, of the
// forms that begin with it, the first 1024 of them by alphabet at most. A
// single character of a script without spaces is such a prefix too. Of a query,
// 16 KB, 64 terms, 16 prefixes (4096 forms in all) and 16 phrases are read;
// [Ranked.Cut] tells when that was not all.
//
// # When something breaks
//
// A manifest or a segment's frame that is broken is found by Open. Lists are
// checked when they are read: a search that meets a broken one returns
// [ErrCorrupt], never a wrong answer, and the owner calls [Index.Reset] and
// replays everything. A flush that fails keeps what it did not write in memory
// and is tried again by the next one. Whatever the instant of a crash, the
// directory opens with the last watermark or with the one that was being written.
package fulltext

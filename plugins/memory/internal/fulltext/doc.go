// Package fulltext is an incremental full-text index with BM25 ranking. It is a
// companion of rows in a database: it can always be rebuilt from them, and is
// never backed up.
//
// Start with [Open], then [Index.Put], [Index.Search], [Index.Flush]. The owner
// numbers its changes; after Open it replays each change whose number is greater
// than [Index.Watermark]. If the owner's last number is less than the watermark,
// because the rows were restored from a backup, it calls [Index.Reset] first. A
// directory that is missing, damaged, or of another format or language opens
// empty with watermark 0, and [Index.Lost] returns why.
//
// # How it works
//
// The index consists of parts (part.go). The newest one is in memory (memory.go)
// and takes every Put; a flush writes it to an immutable segment (segment.go),
// and merges in the background keep the number of segments logarithmic
// (merge.go). A document that was replaced or deleted is marked as dead in its
// part. The manifest, which only a flush writes, lists the segments and their
// dead documents (manifest.go). A search holds a read lock: it sees one state of
// the index, and changes wait for it.
//
// There is a list for each form: a word without accents, followed by its spelling
// if that has a different stem. A term is a set of forms: a word stands for all
// forms that share one of its keys (its stem, and its stem without accents), a
// prefix for all forms that begin with it. So prefixes match the text as written
// although words are stemmed, and both are always exact. The forms do not depend on
// the stemmers, so a segment with outdated stems is searched by the current stems of
// its forms until it is rewritten (restemmed.go).
//
// A search scores the documents of a part in windows (score.go) and reads their
// lists block by block (cursor.go). With a limit it skips the blocks and windows
// that cannot contain one of the best hits.
//
// # Words
//
// A word is a run of letters, marks and digits, or a single symbol such as an
// emoji; everything else separates. Texts are normalized to NFKC and lower case,
// words are stemmed as they are spelled, and accents are removed from the stems
// (package words). Runs of scripts that are written without spaces become pairs of
// characters.
//
// # Queries
//
// A query is words, "phrases" and prefixes*. A document matches if it contains
// any of the words or prefixes, and all of the phrases. The words of a phrase
// must be adjacent in one field, where a stop word holds a place; they count for
// the score like other words. A prefix is one term: its count in a document is
// the sum, its document frequency the union, of the forms that begin with it, the
// first 1024 of them in alphabetical order at most. A single character of a
// script without spaces is such a prefix too. Of a query, 16 KB, 64 terms, 16
// prefixes (4096 forms in all) and 16 phrases are read; [Ranked.Cut] reports
// whether there was more. A search can be restricted to the documents of a tag.
//
// # When something breaks
//
// Open finds a damaged manifest or tail of a segment. Lists are checked when they
// are read: a search that finds a damaged one returns [ErrCorrupt], never a wrong
// answer, and the owner calls [Index.Reset] and replays everything. After a
// failed flush everything stays in memory until the next one. After a crash the
// directory opens with the last watermark or with the one that was being written.
package fulltext

package store

import (
	"context"

	"github.com/the-edge-agent/tea/sdk/x/filter"
)

// Driver is the database of a memory: rows under the names of records. All
// features of the memory (checks of names, deduplication, conditions, expiry,
// search, synchronization) are built on rows, once for all drivers. See
// [Backend.Driver].
//
// A row is an entry of the long-term memory, an item of a vector collection or a
// document, depending on the feed in its name. Every change of a row, including
// its deletion, gets a number that is larger than the numbers of all earlier
// changes of the feed, and appears in the order of the numbers: a reader that has
// seen a number has seen all smaller ones. A deleted row leaves a tombstone with
// the number of its deletion until Sweep removes it.
//
// Names are valid when a driver gets them: a space is UTF-8 of up to 256 bytes, a
// key of up to 4,096 bytes with any character. Both are compared byte by byte.
// Times are microseconds since 1970, 0 = none.
//
// The optional interfaces are [Bounded], [DocumentFinder], [TextSearcher],
// [TextFilterer], [NearestSearcher], [VectorCacher], [PrefixDeleter], [FileStore], [ContentStore],
// [Inspector] and [Resetter].
//
// A call whose context has ended fails with the context's error or succeeds. A
// statement that fails is a query_error, a database that cannot be reached a
// connection_error. Implementations are safe for concurrent use.
type Driver interface {
	// State returns the state of a feed.
	State(ctx context.Context, feed Feed) (FeedState, error)
	// Get returns the existing rows, and the known tombstones of others, in any
	// order. All are of one instant.
	Get(ctx context.Context, q RowQuery) ([]Row, error)
	// Scan returns rows of a space in the order of their keys' bytes. Entries need no numbers.
	Scan(ctx context.Context, q RowRange) (RowPage, error)
	// Changes returns the rows of a feed that changed after a number, and tombstones, in
	// the order of their last changes.
	Changes(ctx context.Context, q RowChanges) (RowPage, error)
	// Write does the writes of a batch and sets their results. They become durable
	// together, before Write returns. No two writes have the same name. An empty
	// batch creates the database if it is new.
	Write(ctx context.Context, b *Batch) error
	// Spaces describes the existing vector collections with these names, or all
	// collections if there are no names, in the order of the names' bytes.
	Spaces(ctx context.Context, names ...string) ([]Space, error)
	// Drop removes a vector collection with its rows. It returns the number of rows
	// and whether the collection existed.
	Drop(ctx context.Context, space string) (rows int, existed bool, err error)
	// Sweep removes the entries that expired before an instant, and returns their
	// number. They leave no tombstone, or a tombstone that is Swept. It also
	// removes the tombstones of all feeds that are older than deleted.
	Sweep(ctx context.Context, expired, deleted int64) (entries int, err error)
	// Close ends background work and closes the connections.
	Close() error
}

// FeedState is the state of a feed.
type FeedState struct {
	// Identity identifies the contents of the database. It changes when they are removed
	// or the database is created again. It is "" before the first Write.
	Identity string
	// Last is the number of the last change.
	Last int64
	// Tombstones with numbers up to Forgotten were removed.
	Forgotten int64
}

// Row is a stored record.
type Row struct {
	RecordName
	// ID is unique in the feed and does not change while the row exists. A row that
	// is stored again after its deletion can have the same ID. The ID of a
	// tombstone is 0 if it is unknown.
	ID int64
	// Seq is the number of the last change.
	Seq int64
	// Deleted marks a tombstone, which has a name, ID, Seq and Updated.
	Deleted bool
	// Swept marks the tombstone of an entry that expired. Other devices do not see it.
	Swept bool
	// Version counts the changes of a document from 1.
	Version int64
	// Body is an entry's value as canonical JSON, a document, or a vector as
	// little-endian float32.
	Body []byte
	// Load, if set, reads the row again with its Body, which was left out because it is large. The row that it returns is
	// Deleted if it no longer exists.
	Load func(ctx context.Context) (Row, error) `json:"-"`
	// Size is the length of an entry's value, even if Body was not read.
	Size int64
	// Hash is the SHA-256 of an entry's value, in hex.
	Hash string
	// Text is the text of a vector.
	Text string
	// Metadata is canonical JSON, "" for none.
	Metadata string
	// Created and Updated are the times of an entry's first and last change,
	// Expires is its time of expiry.
	Created, Updated, Expires int64
	// Damaged is the reason why the row cannot be read. A damaged row can be
	// replaced and deleted.
	Damaged error
}

// Document returns the document of a row.
func (r *Row) Document() Document {
	return Document{Kind: r.Space, ID: r.Key, Body: r.Body, Version: r.Version, Seq: r.Seq}
}

// RowQuery selects rows of a feed, either by their names or by their ids.
type RowQuery struct {
	Feed  Feed
	Names []RecordName
	IDs   []int64
	// NoBody leaves the bodies out.
	NoBody bool
	// Numbered reports whether the numbers and the tombstones are used. Otherwise a driver can
	// leave both out, and the ids and times of entries that it selects by their names; the
	// numbers of documents are in the order of their last changes.
	Numbered bool
}

// RowRange selects rows of a space.
type RowRange struct {
	Feed  Feed
	Space string
	// Prefix restricts the keys.
	Prefix string
	// After is the key after which the rows begin; "" = the first one.
	After string
	// Limit bounds the number of rows; it is positive. MaxBytes bounds the size of
	// the bodies, except the first one; 0 = the driver chooses a bound.
	Limit    int
	MaxBytes int64
	// NoBody leaves the bodies out.
	NoBody bool
	// Live is a time; entries that expire then or earlier can be left out. 0 = none.
	Live int64
	// Require has texts. A driver that finds entries by their words can leave out
	// those without the words of these texts.
	Require []string
}

// RowChanges selects changes of a feed.
type RowChanges struct {
	Feed Feed
	// Space restricts changes of vectors to a collection; "" = all. Tombstones then
	// need no key, and the numbers can count the changes of the collection only.
	Space string
	// After is the number after which the changes begin.
	After int64
	// FromStart is as in ChangeQuery.
	FromStart bool
	// Limit and MaxBytes are as in RowRange.
	Limit    int
	MaxBytes int64
}

// RowPage is a page of rows. It can have fewer rows than the limit although there
// are more.
type RowPage struct {
	Rows []Row
	// More reports whether there can be further rows.
	More bool
	// Last is the number of the last change on the page or, without More, of the last change of the feed.
	Last int64
	// Space describes RowChanges.Space as of before the changes were read. It is the
	// zero value if the collection does not exist.
	Space Space
	// Forgotten is FeedState.Forgotten as of before the changes were read.
	Forgotten int64
}

// Space is a vector collection.
type Space struct {
	Name      string
	Dimension int
	// Born is the number of the change that created it.
	Born int64
	// Count is the number of its rows.
	Count int
}

// Batch is a set of writes. If it is not Atomic, a database with bounded transactions can split it.
type Batch struct {
	Writes []*RowWrite
	// Atomic reports whether no write is done if one is refused.
	Atomic bool
	// Numbered reports whether the numbers in the results are used; only then a write has a
	// Precondition.Seq. Otherwise a driver can assign them when changes are read.
	Numbered bool
	// Now is the time of the writes. An entry that expires at Now or earlier is not
	// live.
	Now int64
}

// RowWrite writes a row, or deletes it if Deleted is set. The first vector of a
// collection creates it, with the vector's dimension.
type RowWrite struct {
	// Row is the row to store, without ID, Seq and Swept. Version 0 means the next version of the document, Created 0
	// the time of the replaced live entry or Now, and Updated 0 means Now.
	Row
	// If is a condition; a write is refused if it is not met.
	If Precondition
	// Deduplicate skips the write of an entry if a live entry has the same Hash and
	// Metadata, and neither expires.
	Deduplicate bool

	Result RowResult
}

// RowResult is the result of a RowWrite. If an atomic batch was not done, only
// Live, Version, Unmet, Dimension and Err are set.
type RowResult struct {
	// Seq is the number of the row after the write; 0 = it does not exist.
	Seq int64
	// Live reports whether an unexpired row existed. Version is the version of an
	// existing document.
	Live    bool
	Version int64
	// Same reports whether the row was not written because of Deduplicate.
	Same bool
	// Unmet reports whether the write was refused because its condition was not met.
	Unmet bool
	// Dimension is the dimension of the collection if the write was refused because of another one.
	Dimension int
	// Err is the reason why the write was refused because the database cannot store the
	// row, such as its size; a *tea.Error.
	Err error
}

// Precondition is a condition on a row before it is written. The zero value is
// always met.
type Precondition struct {
	// Absent requires that there is no row.
	Absent bool
	// Seq and Version are required values of the row; 0 = any.
	Seq, Version int64
}

// Met reports whether the condition is met by a row with these properties.
func (p Precondition) Met(exists bool, seq, version int64) bool {
	return !(p.Absent && exists) && (p.Seq == 0 || exists && p.Seq == seq) && (p.Version == 0 || exists && p.Version == version)
}

// Bounded is a Driver that bounds the sizes in bytes of an entry's metadata and of a
// document; 0 = no bound.
type Bounded interface {
	Bounds() (metadata, document int)
}

// TextSearcher is a Driver that finds entries by their texts.
type TextSearcher interface {
	// SearchText returns the rows that match the text of a query, best first. It returns the error of [Unsupported] if
	// this database has no text search.
	SearchText(ctx context.Context, q TextQuery) (TextPage, error)
}

// TextFilterer is a TextSearcher that returns only rows that match TextQuery.Filter. Rows of other drivers are filtered
// after they are read.
type TextFilterer interface{ FiltersText() bool }

// TextQuery selects entries by a text; see [Search].
type TextQuery struct {
	Space, Text, Prefix string
	// Filter restricts the rows by their metadata. Only a [TextFilterer] uses it.
	Filter filter.Filter
	// Offset is the number of rows to leave out.
	Offset int
	// The other fields are as in RowRange.
	Limit    int
	MaxBytes int64
	NoBody   bool
	Live     int64
	Require  []string
}

// TextPage is the result of a TextQuery. It can have fewer rows than the limit although
// there are more.
type TextPage struct {
	Rows []Row
	// Scores has the score of each row.
	Scores []float64
	// More reports whether there can be further rows.
	More bool
	// Cut reports whether a part of the text was ignored because of its size.
	Cut bool
}

// PrefixDeleter is a Driver that removes many entries in one request. It returns how many were live at a time. Entries
// of other drivers are read and removed one by one.
type PrefixDeleter interface {
	DeletePrefix(ctx context.Context, space, prefix string, now int64) (live int, err error)
}

// DocumentFinder is a Driver that finds documents by their fields. Without it, all of
// their kind are read.
type DocumentFinder interface {
	FindDocuments(ctx context.Context, q DocumentQuery) ([]Row, error)
	CountDocuments(ctx context.Context, q DocumentQuery) (int, error)
}

// NearestSearcher is a Driver that compares vectors. Without it, each searched
// collection is copied to memory. See [VectorIndex.Search].
type NearestSearcher interface {
	// Nearest returns the rows that match a query, nearest first, and their
	// similarities. If the error wraps [ErrUnsupported], the collection is copied to
	// memory, and the query is checked there.
	Nearest(ctx context.Context, space string, q VectorQuery) (rows []Row, similarities []float64, err error)
}

// VectorCacher is a Driver whose collections are copied to memory with the texts of the
// vectors, so that a search reads only what has changed. RowQuery.IDs does not select
// vectors then.
type VectorCacher interface{ CachesVectors() bool }

// FileStore is a Driver that stores the files of a text index, which one process
// writes. Without it, full-text search is not supported.
type FileStore interface {
	// ReadFile returns a file. The error wraps fs.ErrNotExist if it does not exist.
	ReadFile(ctx context.Context, name string) ([]byte, error)
	WriteFile(ctx context.Context, name string, data []byte) error
	RemoveFile(ctx context.Context, name string) error
	ListFiles(ctx context.Context) ([]string, error)
	// MayWrite reports whether this process may write.
	MayWrite(ctx context.Context) bool
}

// ContentStore is a Driver that stores the contents of files. Without it,
// settings.memory.blobs must be set.
type ContentStore interface{ Contents() BlobStorage }

// Inspector is a Driver that reports sizes: entries has the numbers of entries
// (ltm), vectors, and each kind of document, bytes the sizes by part.
type Inspector interface {
	Inspect(ctx context.Context) (entries, bytes map[string]int64, err error)
}

// Resetter is a Driver that can remove all data.
type Resetter interface {
	Reset(ctx context.Context) error
}

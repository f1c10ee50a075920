package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Replica is an optional interface of a store: its contents as records that can
// be archived, copied to another store and synchronised with it.
//
// Every change of a record gets a number that is larger than all earlier ones of
// its feed, even if the store's clock was set back. Changes appear in the feed in
// the order of their numbers: once a reader has seen number n, no smaller one is
// added. A number is at least 1.
//
// Implementations are safe for concurrent use.
type Replica interface {
	// Identity identifies the contents. It changes when the store is emptied or
	// created again.
	Identity(ctx context.Context) (string, error)
	// Changes returns the records of a feed that changed after a number, in the
	// order of their last changes. A deleted record is a tombstone, which can
	// appear in addition to the record if it was stored again later. If tombstones
	// after the number were removed, the error wraps ErrTooOld. If the number is
	// larger than any that the store has assigned, it wraps ErrTooOld and
	// ErrUnknownChange. Neither happens after 0, and only the second happens with
	// ChangeQuery.FromStart.
	Changes(ctx context.Context, query ChangeQuery) (ChangePage, error)
	// Records returns the current records with these names, in order. A record that
	// does not exist has Deleted set, with the number and time of its tombstone, if
	// there is one.
	Records(ctx context.Context, names ...RecordName) ([]Record, error)
	// Content opens the content of a record by its SHA-256 in hex; the caller
	// closes it. Reading a damaged content fails at its end. The error wraps
	// ErrNotFound if it does not exist.
	Content(ctx context.Context, hash string) (io.ReadCloser, error)
	// Put writes records and deletes records that are Deleted. The writes become
	// durable together. The results are in the order of the writes; a write whose
	// condition is not met is not done, nor is a write that the store refuses. Two
	// writes must not have the same name.
	Put(ctx context.Context, writes ...RecordWrite) ([]PutResult, error)
}

// ErrTooOld is wrapped by the error of a Changes call that cannot list all
// deletions since a number. The caller compares all records instead.
var ErrTooOld = errors.New("deletions since then are no longer known")

// ErrUnknownChange is wrapped, together with ErrTooOld, by the error of Changes
// after a number that the store has not assigned: the store has lost its last
// changes. The caller must not treat a missing record as deleted.
var ErrUnknownChange = errors.New("the store does not know the change")

// Feed is a sequence of changes.
type Feed string

// The feeds of a Replica. A store has all of them, even without records.
const (
	// EntryFeed has the entries of the long-term memory. The space is the
	// namespace.
	EntryFeed Feed = "ltm"
	// VectorFeed has the items of the vector index. The space is the collection.
	VectorFeed Feed = "vectors"
	// DocumentFeed has the documents of the metadata store. The space is the kind.
	DocumentFeed Feed = "documents"
	// RowFeed names rows of data.* in the result of memory.sync. The space is the
	// table, the key a JSON list with the values of the primary key. It is not a feed
	// of a Replica.
	RowFeed Feed = "rows"
)

// Feeds returns the feeds in the order in which records are copied.
func Feeds() []Feed { return []Feed{EntryFeed, VectorFeed, DocumentFeed} }

// RecordName identifies a record.
type RecordName struct {
	Feed  Feed   `json:"feed"`
	Space string `json:"space"`
	Key   string `json:"key"`
}

// Record is an entry, a vector or a document.
type Record struct {
	RecordName
	// Seq is the number of the record's last change in its store.
	Seq int64 `json:"-"`
	// Deleted marks a tombstone, which has no Body.
	Deleted bool `json:"deleted,omitempty"`
	// Body is a JSON object: an EntryBody, a VectorBody, or the document.
	Body json.RawMessage `json:"body,omitempty"`
	// Hash identifies the Body: two records with equal hashes are equal. See
	// EntryHash, VectorHash and DocumentHash. "" for a tombstone.
	Hash string `json:"hash,omitempty"`
	// Created and Updated are the times of the record's first and last change by
	// the clock of the store that made it; zero if unknown.
	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
	// Expires is the time when the record expires; zero = never. Expired records
	// are records until they are swept. A sweep leaves no tombstone.
	Expires time.Time `json:"expires,omitzero"`
	// Content is the SHA-256 in hex of the content that belongs to the record, such
	// as a file's; "" for none. See Replica.Content.
	Content string `json:"content,omitempty"`
	// Damaged reports whether the record cannot be read. It has no Body.
	Damaged bool `json:"-"`
}

// EntryBody is the body of a record of the EntryFeed.
type EntryBody struct {
	Value    json.RawMessage `json:"value"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// VectorBody is the body of a record of the VectorFeed.
type VectorBody struct {
	Text      string          `json:"text"`
	Embedding []float32       `json:"embedding"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// ChangeQuery selects changes.
type ChangeQuery struct {
	Feed Feed
	// After is the number after which the changes begin; 0 = from the beginning.
	After int64
	// FromStart reports whether this is a further page for a caller that began after
	// 0: earlier removed tombstones belong to records that it has never seen.
	FromStart bool
	// Limit bounds the number of records, which is at least 1.
	Limit int
	// MaxBytes bounds the size of the bodies, except the first one; 0 = no bound.
	MaxBytes int64
}

// ChangePage is the result of a ChangeQuery.
type ChangePage struct {
	Records []Record
	// Last is the number after which the next page begins.
	Last int64
	// More reports whether there are further changes.
	More bool
}

// RecordWrite is a record to write. Record.Hash and Record.Seq are not used.
type RecordWrite struct {
	Record
	// If is the number that the record must have: AnySeq = any or none, 0 = the
	// record must not exist.
	If int64
	// Open opens the content; it is called if the record has a content that the
	// store lacks. The caller of Put guarantees that it matches Record.Content. The
	// store verifies it and refuses the record if it does not match or the error
	// wraps ErrNotFound.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// AnySeq is a condition of a RecordWrite that is always met.
const AnySeq int64 = -1

// PutResult is the result of a RecordWrite.
type PutResult struct {
	// Seq is the current number of the record; 0 if it does not exist.
	Seq int64
	// Conflict reports whether the condition was not met, so nothing was written.
	Conflict bool
	// Err is the reason why the store refuses the record, a *tea.Error.
	Err error
}

// EntryHash returns the hash of an entry. content is the SHA-256 of the
// value's canonical JSON in hex, metadata canonical JSON or "".
func EntryHash(content, metadata string, expires time.Time) string {
	return hashOf([]byte(content), []byte(metadata), []byte(micros(expires)))
}

// VectorHash returns the hash of a vector. metadata is canonical JSON or "".
func VectorHash(text string, embedding []float32, metadata string) string {
	raw := make([]byte, 0, 4*len(embedding))
	for _, f := range embedding {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return hashOf([]byte(text), raw, []byte(metadata))
}

// DocumentHash returns the hash of a document. It ignores the order of members
// and white space. A body that is not JSON is a validation_error.
func DocumentHash(body json.RawMessage) (string, error) {
	v, err := value.Decode(body)
	if err != nil {
		return "", tea.Errorf(tea.ValidationError, "the document is not JSON: %w", err)
	}
	canonical, err := value.Encode(v)
	if err != nil {
		return "", err
	}
	return hashOf(canonical), nil
}

// hashOf returns the SHA-256 of the parts, each preceded by its length.
func hashOf(parts ...[]byte) string {
	sum := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = sum.Write(length[:]) // a hash never fails
		_, _ = sum.Write(part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func micros(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

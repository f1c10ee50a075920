package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/filter"
)

// LongTermMemory keeps JSON values under keys. What Store and Delete have
// acknowledged survives a crash, and the next Search sees it.
//
// A key has 1 to 4,096 bytes of UTF-8 and is compared byte by byte: case,
// spaces and forms of normalization count, and no character is special. What
// is no key is refused by Store with a validation_error; elsewhere it is a key
// that is not there. After Close every call fails with a connection_error; one
// whose context has ended fails with the context's error, or has done its work.
//
// Implementations are safe for concurrent use.
type LongTermMemory interface {
	// Store writes the entries, all or none. The results have the order of
	// the entries; of two with the same key the later one wins. No entries are
	// no error. What is no entry is a validation_error.
	Store(ctx context.Context, entries ...Entry) ([]Stored, error)
	// Retrieve gives the live entry under key, or an error that wraps
	// ErrNotFound. A value that is damaged is another error. The entry's number
	// and the times of its changes may be left zero: List gives them.
	Retrieve(ctx context.Context, key string) (Memory, error)
	// Delete removes the entry under key and says whether there was a live one.
	Delete(ctx context.Context, key string) (bool, error)
	// Search gives the live entries that fit the query, best first; without a
	// text in the order of their keys.
	Search(ctx context.Context, query Search) ([]Found, error)
	// List gives live entries in the order of their keys' bytes.
	List(ctx context.Context, list List) ([]Memory, error)
	// Sweep removes what expired before the given instant and blobs that no
	// row names. It returns how many entries went. No live entry is harmed,
	// whatever is written at the same time.
	Sweep(ctx context.Context, before time.Time) (int, error)
	// Close ends background work and writes what makes the next start fast.
	Close() error
}

// Entry is what is stored.
type Entry struct {
	Key string
	// Value is any JSON text. It comes back as canonical JSON: members in the
	// order of their names, integers of any size exact.
	Value json.RawMessage
	// Metadata is a JSON object, or nil for none. It replaces the one before.
	Metadata json.RawMessage
	// TTL is how long the entry lives from now on; 0 = for ever. It is not
	// negative.
	TTL time.Duration
}

// Stored says what became of an Entry.
type Stored struct {
	// Created is false where a live entry was there before.
	Created bool
	// Deduplicated says that the same value and metadata were there, for
	// ever as now: nothing was written.
	Deduplicated bool
	// Inlined says that the value is in the row rather than in a blob.
	Inlined bool
	// ContentHash is the SHA-256 of the value's canonical JSON, in hex.
	ContentHash string
	// ByteSize is the length of that JSON in bytes.
	ByteSize int64
}

// Memory is an entry as it was stored.
type Memory struct {
	// ID is the entry's number; it stays while the entry lives.
	ID          int64
	Key         string
	Value       json.RawMessage
	Metadata    json.RawMessage
	ContentHash string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// ExpiresAt is zero for an entry that lives for ever.
	ExpiresAt time.Time
	// Damaged says that the value is not what was stored, and Value is nil. List
	// and Search give such an entry, Retrieve fails.
	Damaged bool
}

// Search asks a LongTermMemory.
type Search struct {
	// Text is what a person would type: words, "quoted phrases", prefixes*.
	Text string
	// Prefix restricts the keys.
	Prefix string
	// Metadata restricts to entries whose metadata fits it.
	Metadata filter.Filter
	// Limit is the number of results; none where it is below 1.
	Limit int
}

// Found is a result of a Search. Score is BM25, 0 without a text.
type Found struct {
	Memory
	Score float64
}

// List asks for a page of entries.
type List struct {
	Prefix string
	// After is the key after which the page begins; "" = the first.
	After string
	// Limit is the number of entries; none where it is below 1.
	Limit int
}

package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/filter"
)

// LongTermMemory stores JSON values under keys. Acknowledged changes survive a
// crash, and the next Search sees them.
//
// Namespaces separate entries: a call sees the entries of one namespace only, and
// each namespace can have the same key. The default namespace is "". A namespace
// has at most 256 bytes of UTF-8 without control characters; others are a
// validation_error.
//
// A key has 1 to 4,096 bytes of UTF-8 and is compared byte by byte: case, spaces
// and forms of normalization are significant, and no character is special. Store
// refuses an invalid key with a validation_error; other calls treat it as a key
// that does not exist. After Close every call fails with a connection_error. A
// call whose context has ended fails with the context's error or succeeds.
//
// Implementations are safe for concurrent use.
type LongTermMemory interface {
	// Store writes the entries atomically. The results are in the order of the
	// entries, which can be empty. An invalid entry and a duplicate key are a
	// validation_error.
	Store(ctx context.Context, entries ...Entry) ([]Stored, error)
	// Retrieve returns the live entry under key, or an error that wraps
	// ErrNotFound. A damaged value is a different error. The entry's ID and the
	// times of its changes can be zero: List returns them.
	Retrieve(ctx context.Context, namespace, key string) (Memory, error)
	// Delete removes the entry under key and reports whether it was live.
	Delete(ctx context.Context, namespace, key string) (bool, error)
	// DeletePrefix removes the entries whose keys begin with prefix and returns the
	// number of live ones. It is not atomic: after an error, some entries may be
	// removed.
	DeletePrefix(ctx context.Context, namespace, prefix string) (int, error)
	// Search returns the live entries that match the query, best first; without a
	// text in the order of their keys.
	Search(ctx context.Context, query Search) (Results, error)
	// List returns live entries in the order of their keys' bytes.
	List(ctx context.Context, list List) (Page, error)
	// Sweep removes entries that expired before an instant, and blobs without an
	// entry. It returns the number of removed entries. Concurrent writes are
	// safe.
	Sweep(ctx context.Context, before time.Time) (int, error)
	// Close ends background work and writes files that make the next start fast.
	Close() error
}

// Entry is an entry to store.
type Entry struct {
	Namespace string
	Key       string
	// Value is any JSON text. Reading returns canonical JSON: members in the order
	// of their names, integers of any size exact.
	Value json.RawMessage
	// Metadata is a JSON object, or nil for none. It replaces existing metadata.
	Metadata json.RawMessage
	// TTL is the time until the entry expires; 0 = never. It must not be
	// negative.
	TTL time.Duration
}

// Stored is the result of storing an Entry.
type Stored struct {
	// Created reports whether no live entry existed.
	Created bool
	// Deduplicated reports whether nothing was written because the same value and
	// metadata were already stored without expiry.
	Deduplicated bool
	// Inlined reports whether the value is in the row, not in a blob.
	Inlined bool
	// ContentHash is the SHA-256 of the value's canonical JSON, in hex.
	ContentHash string
	// ByteSize is the length of that JSON in bytes.
	ByteSize int64
}

// Memory is a stored entry.
type Memory struct {
	// ID is the entry's number. It does not change while the entry exists.
	ID          int64
	Namespace   string
	Key         string
	Value       json.RawMessage
	Metadata    json.RawMessage
	ContentHash string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// ExpiresAt is zero for an entry that does not expire.
	ExpiresAt time.Time
	// Damaged reports whether the stored data is damaged; Value is nil. List and
	// Search return such an entry, Retrieve fails.
	Damaged bool
}

// entryBytes is the size of an entry in a result without its key, value and
// metadata.
const entryBytes = 256

// JSONBytes is an upper bound of the entry's size in a result.
func (m *Memory) JSONBytes() int64 {
	escaped := 0
	for i := range len(m.Key) {
		if c := m.Key[i]; c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			escaped++
		}
	}
	return int64(entryBytes + len(m.Key) + 5*escaped + len(m.Value) + len(m.Metadata))
}

// Search is a query of a LongTermMemory.
type Search struct {
	Namespace string
	// Text has words, "quoted phrases" and prefixes*.
	Text string
	// Prefix restricts the keys.
	Prefix string
	// Metadata restricts the entries by their metadata.
	Metadata filter.Filter
	// Skip is the number of best results to leave out; for a query with a text.
	Skip int
	// After is the key after which the results begin; for a query without a text.
	After string
	// Limit bounds the number of results; there are none if it is below 1.
	Limit int
	// KeysOnly leaves values and metadata out.
	KeysOnly bool
	// MaxBytes bounds the size of the results as JSON, except the first one; 0 =
	// no bound.
	MaxBytes int64
}

// Results are the results of a Search.
type Results struct {
	Found []Found
	// More reports whether further entries match the query.
	More bool
	// Cut reports whether a part of the text was ignored because of its size.
	Cut bool
}

// Found is a result of a Search. Score is BM25, 0 without a text.
type Found struct {
	Memory
	Score float64
}

// List selects a page of entries.
type List struct {
	Namespace string
	Prefix    string
	// After is the key after which the page begins; "" = the first.
	After string
	// Limit bounds the number of entries; there are none if it is below 1.
	Limit int
	// KeysOnly leaves values and metadata out.
	KeysOnly bool
	// MaxBytes bounds the size of the page as JSON, except its first entry; 0 = no
	// bound.
	MaxBytes int64
}

// Page is the result of a List.
type Page struct {
	Entries []Memory
	// More reports whether further entries follow.
	More bool
}

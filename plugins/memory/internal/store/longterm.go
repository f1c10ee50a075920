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
// Namespaces separate entries: a call sees those of one namespace only, and a
// key can be in each. The default namespace is "". A namespace has at most 256
// bytes of UTF-8 without control characters; another one is a validation_error.
//
// A key has 1 to 4,096 bytes of UTF-8 and is compared byte by byte: case,
// spaces and forms of normalization count, and no character is special. Store
// refuses what is not a key with a validation_error; elsewhere it is a key that
// is not there. After Close every call fails with a connection_error; one whose
// context has ended fails with the context's error, or has done its work.
//
// Implementations are safe for concurrent use.
type LongTermMemory interface {
	// Store writes the entries, all or none. The results have the order of
	// the entries. No entries are not an error. An invalid entry and two with
	// the same key are a validation_error.
	Store(ctx context.Context, entries ...Entry) ([]Stored, error)
	// Retrieve returns the live entry under key, or an error that wraps
	// ErrNotFound. A value that is damaged is another error. The entry's number
	// and the times of its changes may be left zero: List has them.
	Retrieve(ctx context.Context, namespace, key string) (Memory, error)
	// Delete removes the entry under key and reports whether there was a live one.
	Delete(ctx context.Context, namespace, key string) (bool, error)
	// DeletePrefix removes the entries whose keys begin with prefix and returns
	// how many live ones there were. It may do so in several steps: one that
	// fails leaves the rest.
	DeletePrefix(ctx context.Context, namespace, prefix string) (int, error)
	// Search returns the live entries that fit the query, best first; without a
	// text in the order of their keys.
	Search(ctx context.Context, query Search) (Results, error)
	// List returns live entries in the order of their keys' bytes.
	List(ctx context.Context, list List) (Page, error)
	// Sweep removes what expired before the given instant and blobs that no
	// row names. It returns how many entries went. No live entry is harmed,
	// whatever is written at the same time.
	Sweep(ctx context.Context, before time.Time) (int, error)
	// Close ends background work and writes what makes the next start fast.
	Close() error
}

// Entry is what is stored.
type Entry struct {
	Namespace string
	Key       string
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
	Namespace   string
	Key         string
	Value       json.RawMessage
	Metadata    json.RawMessage
	ContentHash string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// ExpiresAt is zero for an entry that lives for ever.
	ExpiresAt time.Time
	// Damaged says that the entry is not what was stored, and Value is nil. List
	// and Search return such an entry, Retrieve fails.
	Damaged bool
}

// entryBytes is what an entry takes in a result beside its key, value and
// metadata.
const entryBytes = 256

// JSONBytes is about what the entry takes in a result, never less.
func (m *Memory) JSONBytes() int64 {
	escaped := 0
	for i := range len(m.Key) {
		if c := m.Key[i]; c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			escaped++
		}
	}
	return int64(entryBytes + len(m.Key) + 5*escaped + len(m.Value) + len(m.Metadata))
}

// Search is a question to a LongTermMemory.
type Search struct {
	Namespace string
	// Text is what a person would type: words, "quoted phrases", prefixes*.
	Text string
	// Prefix restricts the keys.
	Prefix string
	// Metadata restricts to entries whose metadata fits it.
	Metadata filter.Filter
	// Skip is how many of the best results are left out; for a query with a text.
	Skip int
	// After is the key after which the results begin; for a query without one.
	After string
	// Limit is the number of results; none where it is below 1.
	Limit int
	// KeysOnly leaves values and metadata out.
	KeysOnly bool
	// MaxBytes bounds the results as JSON, but for the first one; 0 = no bound.
	MaxBytes int64
}

// Results are what a Search has found.
type Results struct {
	Found []Found
	// More says that further entries fit the query.
	More bool
	// Cut says that a part of the text was left out because of its size.
	Cut bool
}

// Found is a result of a Search. Score is BM25, 0 without a text.
type Found struct {
	Memory
	Score float64
}

// List asks for a page of entries.
type List struct {
	Namespace string
	Prefix    string
	// After is the key after which the page begins; "" = the first.
	After string
	// Limit is the number of entries; none where it is below 1.
	Limit int
	// KeysOnly leaves values and metadata out.
	KeysOnly bool
	// MaxBytes bounds the page as JSON, but for its first entry; 0 = no bound.
	MaxBytes int64
}

// Page is the answer to a List.
type Page struct {
	Entries []Memory
	// More says that further entries follow.
	More bool
}

package storekit

import (
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Entry is the content of a store.Entry as a LongTermMemory stores it.
type Entry struct {
	Value    string // canonical JSON
	Metadata string // canonical JSON, "" for none
	Hash     string // see store.Stored.ContentHash
	// Inline reports that the value is small enough for its row.
	Inline bool
	// Expires is zero for an entry that does not expire.
	Expires time.Time
}

// Entries returns the contents of entries, in order. inlineBytes is
// store.Config.InlineBytes. An invalid entry and a duplicate key are a
// validation_error.
func Entries(entries []store.Entry, inlineBytes int, now time.Time) ([]Entry, error) {
	contents, err := longterm.ToCanonical(entries, inlineBytes, now)
	if err != nil {
		return nil, err
	}
	all := make([]Entry, len(contents))
	for i, c := range contents {
		all[i] = Entry{Value: c.Value, Metadata: c.Metadata, Hash: c.Hash, Inline: c.Inline, Expires: clock.FromMicro(c.ExpiresAt)}
	}
	return all, nil
}

// CheckNamespace returns a validation_error for an invalid namespace.
func CheckNamespace(namespace string) error { return longterm.CheckNamespace(namespace) }

// CheckPrefix returns a validation_error for an invalid namespace, or for a
// prefix or a page's key that is not UTF-8.
func CheckPrefix(namespace, prefix string) error { return longterm.CheckPrefix(namespace, prefix) }

// IsKey reports whether an entry can have the key.
func IsKey(key string) bool { return longterm.Storable(key) }

// NoEntry returns the error of Retrieve for a key without a live entry. It wraps
// store.ErrNotFound.
func NoEntry(key string) error { return longterm.Missing(key) }

// DamagedEntry returns the error of Retrieve for a damaged value.
func DamagedEntry(key, problem string) error { return longterm.Damaged(key, problem) }

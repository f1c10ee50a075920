package longterm

import (
	"fmt"
	"time"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Canonical is an entry in the form that all back ends store.
type Canonical struct {
	Value    string // canonical JSON
	Metadata string // canonical JSON, "" for none
	Hash     string
	// Inline reports that the value is small enough for its row.
	Inline bool
	// ExpiresAt is in microseconds since 1970; 0 = never.
	ExpiresAt int64
	// Fields are the searchable texts.
	Fields []fulltext.Field
}

// ToCanonical validates entries for a back end with its own rows. Invalid entries and
// duplicate keys are a validation_error.
func ToCanonical(entries []store.Entry, inlineBytes int, now time.Time) ([]Canonical, error) {
	contents, err := prepareAll(entries, inlineBytes, now)
	if err != nil {
		return nil, err
	}
	all := make([]Canonical, len(contents))
	for i, c := range contents {
		all[i] = c.toCanonical()
	}
	return all, nil
}

func (c *prepared) toCanonical() Canonical {
	return Canonical{Value: c.text, Metadata: c.metadata, Hash: c.hash, Inline: c.inline, ExpiresAt: c.expiresAt}
}

// Fields returns the searchable texts of a stored entry. Value and metadata are
// canonical JSON.
func Fields(key, text, metadata string) []fulltext.Field {
	v, _ := value.Decode([]byte(text)) // a damaged value has no texts
	return fields(key, v, metadata)
}

// FromRecord validates the record of an existing entry. The error of an invalid record
// is a validation_error.
func FromRecord(r store.Record, inlineBytes int) (Canonical, error) {
	c, err := prepareRecord(r, inlineBytes)
	if err != nil {
		return Canonical{}, err
	}
	return c.toCanonical(), nil
}

// CheckNamespace returns a validation_error for an invalid namespace.
func CheckNamespace(namespace string) error { return checkNamespace(namespace) }

// CheckName returns a validation_error for an invalid namespace or key.
func CheckName(namespace, key string) error {
	return checkEntry(store.Entry{Namespace: namespace, Key: key})
}

// CheckPrefix returns a validation_error for an invalid namespace or prefix.
func CheckPrefix(namespace, prefix string) error { return checkPrefix(namespace, prefix) }

// Storable reports whether an entry can have the key.
func Storable(key string) bool { return storable(key) }

// Missing returns the not_found error of a key.
func Missing(key string) error { return notFound(key) }

// Damaged returns the error of a value that differs from the stored one.
func Damaged(key, problem string) error {
	return damaged(key, fmt.Errorf("%s: %w", problem, content.ErrDamaged))
}

// Required returns texts whose words occur in every entry that matches the filter.
func Required(wanted filter.Filter) []string { return required(wanted) }

package longterm

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Canonical is an entry in the form that all back ends store.
type Canonical struct {
	Value    string // canonical JSON, with sorted members, so that equal values have equal hashes
	Metadata string // canonical JSON, "" for none
	Hash     string
	// Inline reports that the value is small enough for its row.
	Inline bool
	// ExpiresAt is in microseconds since 1970; 0 = never.
	ExpiresAt int64
}

// atOnce is the number of entries from which several goroutines prepare them.
const atOnce = 64

// ToCanonical validates entries. The error is about the first invalid entry. Invalid
// entries and duplicate keys are a validation_error.
func ToCanonical(entries []store.Entry, inlineBytes int, now time.Time) ([]Canonical, error) {
	all := make([]Canonical, len(entries))
	workers := 1
	if len(entries) >= atOnce {
		workers = runtime.GOMAXPROCS(0)
	}
	share := (len(entries) + workers - 1) / workers
	failures := make([]error, workers)
	var group sync.WaitGroup
	for n := range workers {
		group.Go(func() {
			for i := n * share; i < min((n+1)*share, len(entries)) && failures[n] == nil; i++ {
				all[i], failures[n] = toCanonical(entries[i], inlineBytes, now)
			}
		})
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	type name struct{ namespace, key string }
	first := make(map[name]int, len(all))
	for i, e := range entries {
		n := name{e.Namespace, e.Key}
		if j, twice := first[n]; twice {
			return nil, tea.Errorf(tea.ValidationError, "items %d and %d have the same key %q; store one of them", j, i, e.Key)
		}
		first[n] = i
	}
	return all, nil
}

func toCanonical(e store.Entry, inlineBytes int, now time.Time) (c Canonical, err error) {
	if err := CheckName(e.Namespace, e.Key); err != nil {
		return c, err
	}
	if e.TTL < 0 {
		return c, tea.Errorf(tea.ValidationError, "key %q: the ttl is negative", e.Key)
	}
	if _, c.Value, err = canonical(e.Value); err != nil {
		return c, tea.Errorf(tea.ValidationError, "the value of key %q: %w", e.Key, err)
	}
	if e.Metadata != nil {
		var object any
		if object, c.Metadata, err = canonical(e.Metadata); err != nil {
			return c, tea.Errorf(tea.ValidationError, "the metadata of key %q: %w", e.Key, err)
		}
		if _, ok := object.(map[string]any); !ok {
			return c, tea.Errorf(tea.ValidationError, "the metadata of key %q is not an object", e.Key)
		}
	}
	c.Hash, c.Inline = content.Hash([]byte(c.Value)), len(c.Value) < inlineBytes
	if e.TTL > 0 {
		c.ExpiresAt = now.Add(e.TTL).UnixMicro()
	}
	return c, nil
}

func canonical(raw json.RawMessage) (v any, text string, err error) {
	if v, err = value.Decode(raw); err != nil {
		return nil, "", err
	}
	encoded, err := value.Encode(v)
	return v, string(encoded), err
}

// FromRecord validates the record of an existing entry. The error of an invalid record
// is a validation_error.
func FromRecord(r store.Record, inlineBytes int) (Canonical, error) {
	var body store.EntryBody
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return Canonical{}, tea.Errorf(tea.ValidationError, "the record of key %q: %w", r.Key, err)
	}
	c, err := toCanonical(store.Entry{Namespace: r.Space, Key: r.Key, Value: body.Value, Metadata: body.Metadata}, inlineBytes, time.Time{})
	if err == nil && !r.Expires.IsZero() {
		c.ExpiresAt = r.Expires.UnixMicro()
	}
	return c, err
}

// ToRecord returns the record of an entry.
func ToRecord(e store.Memory, seq int64) (store.Record, error) {
	r := store.Record{
		RecordName: store.RecordName{Feed: store.EntryFeed, Space: e.Namespace, Key: e.Key}, Seq: seq,
		Created: e.CreatedAt, Updated: e.UpdatedAt, Expires: e.ExpiresAt, Damaged: e.Damaged,
	}
	if e.Damaged {
		return r, nil
	}
	var err error
	r.Hash = store.EntryHash(e.ContentHash, string(e.Metadata), e.ExpiresAt)
	r.Body, err = json.Marshal(store.EntryBody{Value: e.Value, Metadata: e.Metadata})
	return r, err
}

// Missing returns the not_found error of a key.
func Missing(key string) error { return fmt.Errorf("key %q: %w", key, store.ErrNotFound) }

// Damaged returns the error of a value that differs from the stored one, which must
// differ from not_found.
func Damaged(key, problem string) error {
	return tea.Errorf(tea.InternalError, "the value of key %q is damaged; store it again or delete it: %s: %w", key, problem, content.ErrDamaged)
}

// exactBelow is the magnitude below which an integer and an equal float have the same
// digits.
const exactBelow = 1_000_000

// Required returns texts that every entry that matches the filter contains, since the
// values of metadata are indexed. The filter is still evaluated.
func Required(wanted filter.Filter) (texts []string) {
	for _, c := range wanted {
		want, _ := c.Value()
		switch want := want.(type) {
		case string:
			texts = append(texts, want)
		case int64:
			if -exactBelow < want && want < exactBelow {
				texts = append(texts, strconv.FormatInt(want, 10))
			}
		}
	}
	return texts
}

// Fields returns the searchable texts of an entry: its key and the leaves of its value
// and metadata, which are canonical JSON.
func Fields(key, text, metadata string) []fulltext.Field {
	all := []fulltext.Field{{Name: "key", Text: key}}
	// The metadata come first because only the first words of a very long value are
	// indexed, and filters need the words of the metadata.
	if metadata != "" {
		if object, err := value.Decode([]byte(metadata)); err == nil { // else it is damaged
			all = leaves(all, "metadata", object)
		}
	}
	v, _ := value.Decode([]byte(text)) // a damaged value has no texts
	return leaves(all, "value", v)
}

func leaves(all []fulltext.Field, name string, v any) []fulltext.Field {
	switch v := v.(type) {
	case string:
		return append(all, fulltext.Field{Name: name, Text: v})
	case []any:
		for _, item := range v {
			all = leaves(all, name, item)
		}
	case map[string]any:
		names := make([]string, 0, len(v))
		for member := range v {
			names = append(names, member)
		}
		sort.Strings(names)
		for _, member := range names {
			all = leaves(all, name, v[member])
		}
	case int64:
		return append(all, fulltext.Field{Name: name, Text: strconv.FormatInt(v, 10)})
	case float64, fmt.Stringer:
		if text, err := value.Encode(v); err == nil {
			return append(all, fulltext.Field{Name: name, Text: strings.Trim(string(text), `"`)})
		}
	}
	return all
}

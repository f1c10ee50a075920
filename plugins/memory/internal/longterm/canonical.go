package longterm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Canonical is an entry in the form that all back ends store.
type Canonical struct {
	Value    []byte // canonical JSON
	Metadata string // canonical JSON, "" for none
	Hash     string
	// Inline reports whether the value is small enough for its row.
	Inline bool
	// ExpiresAt is in microseconds since 1970; 0 = never.
	ExpiresAt int64
}

// atOnce is the number of entries from which several goroutines prepare them.
const atOnce = 64

// ToCanonical validates entries for a back end with its own rows. Invalid entries and
// duplicate keys are a validation_error. The error is about the first invalid entry.
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
	first := make(map[[2]string]int, len(all))
	for i, e := range entries {
		name := [2]string{e.Namespace, e.Key}
		if j, twice := first[name]; twice {
			return nil, tea.Errorf(tea.ValidationError, "items %d and %d have the same key %q; store one of them", j, i, e.Key)
		}
		first[name] = i
	}
	return all, nil
}

// toCanonical validates an entry and converts it to its canonical form, with sorted object
// members, so that equal values have equal hashes.
func toCanonical(e store.Entry, inlineBytes int, now time.Time) (c Canonical, err error) {
	if err := checkEntry(e); err != nil {
		return c, err
	}
	if _, c.Value, err = canonical(e.Value); err != nil {
		return c, tea.Errorf(tea.ValidationError, "the value of key %q: %w", e.Key, err)
	}
	if e.Metadata != nil {
		object, text, err := canonical(e.Metadata)
		if err != nil {
			return c, tea.Errorf(tea.ValidationError, "the metadata of key %q: %w", e.Key, err)
		}
		if _, ok := object.(map[string]any); !ok {
			return c, tea.Errorf(tea.ValidationError, "the metadata of key %q is not an object", e.Key)
		}
		c.Metadata = string(text)
	}
	sum := sha256.Sum256(c.Value)
	c.Hash = hex.EncodeToString(sum[:])
	c.Inline = len(c.Value) < inlineBytes
	if e.TTL > 0 {
		c.ExpiresAt = now.Add(e.TTL).UnixMicro()
	}
	return c, nil
}

func canonical(raw json.RawMessage) (v any, text []byte, err error) {
	if v, err = value.Decode(raw); err != nil {
		return nil, nil, err
	}
	text, err = value.Encode(v)
	return v, text, err
}

// FromRecord validates the record of an existing entry. The error of an invalid record
// is a validation_error.
func FromRecord(r store.Record, inlineBytes int) (Canonical, error) {
	var body store.EntryBody
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return Canonical{}, tea.Errorf(tea.ValidationError, "the record of key %q: %w", r.Key, err)
	}
	c, err := toCanonical(store.Entry{Namespace: r.Space, Key: r.Key, Value: body.Value, Metadata: body.Metadata}, inlineBytes, time.Time{})
	if err != nil {
		return c, err
	}
	if !r.Expires.IsZero() {
		c.ExpiresAt = r.Expires.UnixMicro()
	}
	return c, nil
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

package longterm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// largePrefix is the prefix of the blobs of values that are too large for a row.
const largePrefix = "ltm/"

// errRemoved is the error of an entry that was removed while it was read.
var errRemoved = errors.New("removed meanwhile")

// prepared is a validated entry in canonical form.
type prepared struct {
	key       string // the row's key; see rowKey
	text      string // the value's canonical JSON
	value     any
	hash      string
	inline    bool   // the value is in the row, not in a blob
	metadata  string // canonical JSON, "" for none
	expiresAt int64  // microseconds since 1970; 0 = never
}

// atOnce is the number of entries from which several goroutines prepare them.
const atOnce = 64

// prepareAll prepares entries. The error is about the first invalid entry.
func prepareAll(entries []store.Entry, inlineBytes int, now time.Time) ([]*prepared, error) {
	all := make([]*prepared, len(entries))
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
				all[i], failures[n] = prepare(entries[i], inlineBytes, now)
			}
		})
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	first := make(map[string]int, len(all))
	for i, c := range all {
		if j, twice := first[c.key]; twice {
			return nil, tea.Errorf(tea.ValidationError, "items %d and %d have the same key %q; store one of them", j, i, entries[i].Key)
		}
		first[c.key] = i
	}
	return all, nil
}

// prepare validates an entry and converts it to its canonical form, with sorted object
// members, so that equal values have equal hashes.
func prepare(e store.Entry, inlineBytes int, now time.Time) (*prepared, error) {
	if err := checkEntry(e); err != nil {
		return nil, err
	}
	c := &prepared{key: rowKey(e.Namespace, e.Key)}
	var err error
	if c.value, c.text, err = canonical(e.Value); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the value of key %q: %w", e.Key, err)
	}
	if e.Metadata != nil {
		var object any
		if object, c.metadata, err = canonical(e.Metadata); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "the metadata of key %q: %w", e.Key, err)
		}
		if _, ok := object.(map[string]any); !ok {
			return nil, tea.Errorf(tea.ValidationError, "the metadata of key %q is not an object", e.Key)
		}
	}
	sum := sha256.Sum256([]byte(c.text))
	c.hash = hex.EncodeToString(sum[:])
	c.inline = len(c.text) < inlineBytes
	if e.TTL > 0 {
		c.expiresAt = now.Add(e.TTL).UnixMicro()
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

// saveLarge writes large values to blobs. The caller holds m.large until the rows are
// written.
func (m *Memory) saveLarge(ctx context.Context, contents []*prepared) error {
	for _, c := range contents {
		if c.inline {
			continue
		}
		if err := m.large.Save(ctx, c.hash, []byte(c.text)); err != nil {
			return err
		}
	}
	return nil
}

// loadLarge reads a large value from its blob. It must not take m.large: it can run in a
// commit that a holder of m.large waits for. fill handles a value that is removed
// meanwhile.
func (m *Memory) loadLarge(ctx context.Context, hash string) (json.RawMessage, error) {
	if len(hash) != hex.EncodedLen(sha256.Size) {
		return nil, content.ErrDamaged
	}
	return m.large.Load(ctx, hash)
}

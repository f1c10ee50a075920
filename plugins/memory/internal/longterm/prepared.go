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

// largePrefix is where the values are that are too large for a row.
const largePrefix = "ltm/"

// errGone says that an entry was removed while it was read.
var errGone = errors.New("removed meanwhile")

// prepared is an entry made ready to be written.
type prepared struct {
	key       string // of the row
	text      string // the value's canonical JSON
	value     any
	hash      string
	inline    bool   // the value is in the row, not in a blob
	metadata  string // canonical JSON, "" for none
	expiresAt int64  // microseconds since 1970; 0 = never
}

// atOnce is from how many entries on they are prepared by several goroutines.
const atOnce = 64

// prepareAll prepares the entries; the error is that of the first wrong one.
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

// prepare checks an entry and brings it into its canonical form: members in
// the order of their names, so that equal values have equal hashes.
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

// saveLarge writes the values that are too large for their rows. The caller
// holds m.large until the rows are written.
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

// loadLarge reads a value that is not in its row. It does not hold m.large: it
// may run inside of a commit that somebody who holds it waits for. See fill for
// a value that is removed meanwhile.
func (m *Memory) loadLarge(ctx context.Context, hash string) (json.RawMessage, error) {
	if len(hash) != hex.EncodedLen(sha256.Size) {
		return nil, content.ErrDamaged
	}
	return m.large.Load(ctx, hash)
}

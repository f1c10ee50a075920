package embedded

import (
	"context"
	"hash/maphash"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// keys is a set of hashes of keys that tells which keys are certainly new. Deleted keys
// stay in it. It is used for DuckDB, where a look-up takes longer than an insertion.
type keys struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func (k *keys) add(key string)             { k.hashes[maphash.String(k.seed, key)] = struct{}{} }
func (k *keys) mayContain(key string) bool { _, ok := k.hashes[maphash.String(k.seed, key)]; return ok }

func (m *entries) readKeys(ctx context.Context) (*keys, error) {
	rows, err := m.engine.Query(ctx, "SELECT key FROM ltm")
	k := &keys{seed: maphash.MakeSeed(), hashes: map[uint64]struct{}{}}
	var key string
	err = store.Scan(rows, err, func() { k.add(key) }, &key)
	return k, err
}

// filterKnown returns the keys that can exist, and adds all keys to the set, because the
// caller writes them.
func (m *entries) filterKnown(wanted []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		return wanted
	}
	var maybe []string
	for _, key := range wanted {
		if m.keys.mayContain(key) {
			maybe = append(maybe, key)
		}
		m.keys.add(key)
	}
	return maybe
}

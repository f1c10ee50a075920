package keyed_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
)

// memoryDB is a database in memory.
type memoryDB struct {
	mu    sync.Mutex
	pairs map[string]string
}

func newMemoryDB() *memoryDB { return &memoryDB{pairs: map[string]string{}} }

func (m *memoryDB) Get(ctx context.Context, keys ...string) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([][]byte, len(keys))
	for i, key := range keys {
		if value, ok := m.pairs[key]; ok {
			all[i] = append([]byte{}, value...)
		}
	}
	return all, ctx.Err()
}

func (m *memoryDB) Scan(ctx context.Context, from, to string, limit int) (all []keyed.Pair, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.pairs)) {
		if strings.Compare(key, from) >= 0 && key < to && len(all) < limit {
			all = append(all, keyed.Pair{Key: key, Value: []byte(m.pairs[key])})
		}
	}
	return all, ctx.Err()
}

func (m *memoryDB) Write(_ context.Context, ops []keyed.Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, op := range ops {
		switch {
		case op.To != "":
			maps.DeleteFunc(m.pairs, func(key, _ string) bool { return key >= op.Key && key < op.To })
		case op.Value == nil:
			delete(m.pairs, op.Key)
		default:
			m.pairs[op.Key] = string(op.Value)
		}
	}
	return nil
}

func (m *memoryDB) Lock(ctx context.Context) (int64, error) { return 1, ctx.Err() }

func (m *memoryDB) Close() error { return nil }

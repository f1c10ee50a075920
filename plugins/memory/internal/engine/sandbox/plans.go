package sandbox

import (
	"fmt"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	maxPlans = 256
	// maxPlanned bounds the size of a cached query.
	maxPlanned = 8 << 10
)

// Plans caches the drivers' checks of queries. The zero value is ready. A full
// cache is emptied. It is safe for concurrent use.
type Plans struct {
	mu    sync.Mutex
	byKey map[string]any
}

// Key returns the cache key of a query: its text, the tables that it may read,
// the types of its arguments, and values that the driver adds.
func Key(query string, s store.Sandbox, more ...any) string {
	var key strings.Builder
	for _, part := range more {
		fmt.Fprintf(&key, "%v\x00", part)
	}
	for _, t := range s.Tables {
		key.WriteString(t + "\x00")
	}
	for _, v := range s.Views {
		fmt.Fprintf(&key, "\x01%s\x00%v\x00", v.Name, v.Columns)
	}
	for _, arg := range s.Args {
		name, value := Named(arg)
		fmt.Fprintf(&key, "\x02%s\x00%T\x00", name, value)
	}
	fmt.Fprintf(&key, "\x03%d\x00%s", s.MaxRows, query)
	return key.String()
}

// Find returns the cached plan, or nil.
func (p *Plans) Find(key string) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKey[key]
}

// Keep caches a plan.
func (p *Plans) Keep(key string, plan any) {
	if len(key) > maxPlanned {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil || len(p.byKey) >= maxPlans {
		p.byKey = map[string]any{}
	}
	p.byKey[key] = plan
}

// Drop removes a plan that is no longer valid.
func (p *Plans) Drop(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}

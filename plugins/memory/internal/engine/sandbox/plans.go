package sandbox

import (
	"fmt"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	maxPlans = 256
	// maxPlanned bounds the queries that are remembered.
	maxPlanned = 8 << 10
)

// Plans remember what a driver has found out about a query, so that one that
// comes again is not checked again. The zero value is ready. When it is full
// it starts empty again. It is safe for concurrent use.
type Plans struct {
	mu    sync.Mutex
	byKey map[string]any
}

// Key is what the finding depends on: the query, the tables that it may read,
// the types of its arguments, and what the driver adds.
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

// Find returns what is remembered, or nil.
func (p *Plans) Find(key string) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKey[key]
}

// Keep remembers a finding.
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

// Drop forgets a finding that has turned out to be wrong.
func (p *Plans) Drop(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}

package shortterm

import (
	"container/heap"
	"container/list"
	"encoding/json"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
)

// The default bounds.
const (
	DefaultEntries = 10_000
	DefaultBytes   = 64 << 20
)

const (
	maxKey = 4096
	// perEntry is the overhead of an entry.
	perEntry = 200
)

// Bounds limit the memory. Zero values are replaced by the defaults.
type Bounds struct {
	Entries int
	// Bytes bounds the size of keys and values, including overhead.
	Bytes int64
}

// Options configure a Memory. Clock is needed.
type Options struct {
	Bounds Bounds
	Clock  *clock.Clock
}

// Memory keeps values under names: a namespace and a key. It is safe for
// concurrent use.
type Memory struct {
	clock *clock.Clock

	mu      sync.Mutex // guards the fields below
	bounds  Bounds
	entries map[name]*entry
	used    *list.List // of *entry, most recently used first
	expiry  expiry
	bytes   int64
}

type name struct{ namespace, key string }

// entry is a value. at is zero for a value without a time to live.
type entry struct {
	name  name
	value json.RawMessage
	at    time.Time
	used  *list.Element
	place int // index in the expiry heap; -1 = not in it
}

func (e *entry) size() int64 {
	return int64(len(e.name.namespace) + len(e.name.key) + len(e.value) + perEntry)
}

// New creates an empty memory.
func New(o Options) *Memory {
	m := &Memory{clock: o.Clock, entries: map[name]*entry{}, used: list.New()}
	m.Bound(o.Bounds)
	return m
}

// Bound changes the bounds and evicts what exceeds them.
func (m *Memory) Bound(b Bounds) {
	if b.Entries <= 0 {
		b.Entries = DefaultEntries
	}
	if b.Bytes <= 0 {
		b.Bytes = DefaultBytes
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bounds = b
	m.evict(m.clock.Now())
}

// Put stores a value for ttl or, if ttl is 0, until it is evicted. The memory
// owns the JSON text. Expired values are evicted first, then the least recently
// used ones. A value larger than the bounds is a validation_error.
func (m *Memory) Put(namespace, key string, value json.RawMessage, ttl time.Duration) error {
	e := &entry{name: name{namespace, key}, value: value}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case key == "" || len(key) > maxKey || len(namespace) > maxKey:
		return tea.Errorf(tea.ValidationError, "a key must have 1 to %d bytes, and a namespace at most as many", maxKey)
	case !utf8.ValidString(namespace+key) || strings.ContainsRune(namespace+key, utf8.RuneError): // which replaces other bytes in JSON
		return tea.Errorf(tea.ValidationError, "the key %q (namespace %q) is not valid UTF-8", key, namespace)
	case e.size() > m.bounds.Bytes:
		return tea.Errorf(tea.ValidationError, "the value of key %q is too large for the short-term memory: %d bytes (limit %d, settings.memory.short_term.max_bytes); ltm.store keeps large values", key, len(value), m.bounds.Bytes)
	}
	now := m.clock.Now()
	if ttl > 0 {
		e.at = now.Add(ttl)
	}
	m.put(e)
	m.evict(now)
	return nil
}

func (m *Memory) put(e *entry) {
	if old := m.entries[e.name]; old != nil {
		m.remove(old)
	}
	m.entries[e.name] = e
	m.bytes += e.size()
	e.used = m.used.PushFront(e)
	if e.place = -1; !e.at.IsZero() {
		heap.Push(&m.expiry, e)
	}
}

func (m *Memory) remove(e *entry) {
	delete(m.entries, e.name)
	m.bytes -= e.size()
	m.used.Remove(e.used)
	if e.place >= 0 {
		heap.Remove(&m.expiry, e.place)
	}
}

// evict removes expired values, and then the least recently used ones until the
// memory is within its bounds.
func (m *Memory) evict(now time.Time) {
	for len(m.expiry) > 0 && !m.expiry[0].at.After(now) {
		m.remove(m.expiry[0])
	}
	for len(m.entries) > m.bounds.Entries || m.bytes > m.bounds.Bytes {
		m.remove(m.used.Back().Value.(*entry))
	}
}

// Get returns the value, which the caller must not change; false if there is
// none.
func (m *Memory) Get(namespace, key string) (json.RawMessage, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.alive(name{namespace, key})
	if e == nil {
		return nil, false
	}
	m.used.MoveToFront(e.used)
	return e.value, true
}

// Delete removes a value and reports whether it existed.
func (m *Memory) Delete(namespace, key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.alive(name{namespace, key})
	if e != nil {
		m.remove(e)
	}
	return e != nil
}

func (m *Memory) alive(n name) *entry {
	e := m.entries[n]
	if e != nil && !e.at.IsZero() && !e.at.After(m.clock.Now()) {
		m.remove(e)
		return nil
	}
	return e
}

// expiry is a heap of the entries that expire, the next one first.
type expiry []*entry

func (e expiry) Len() int           { return len(e) }
func (e expiry) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e expiry) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].place, e[j].place = i, j
}

func (e *expiry) Push(v any) {
	added := v.(*entry)
	added.place = len(*e)
	*e = append(*e, added)
}

func (e *expiry) Pop() any {
	last := len(*e) - 1
	v := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	v.place = -1
	return v
}

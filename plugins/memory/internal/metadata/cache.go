// Package metadata caches metadata fields in memory, so that a filter over many
// items does not read their rows. Start with [Cache].
package metadata

import (
	"context"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// maxFields bounds the cached metadata fields. If a filter exceeds it, only its
// fields are kept.
const maxFields = 16

// Cache caches the fields that filters have used. The zero value is ready, and
// safe for concurrent use. The owner of the rows passes every committed change to
// Apply, in the order of the commits.
type Cache struct {
	reading sync.Mutex // held by the goroutine that reads fields

	mu     sync.Mutex // guards the fields below
	fields *fields    // nil until the first filter
	// pending are the changes since the reading of fields began; nil if no fields
	// are being read.
	pending []Change
}

// Change is an item that was written or removed.
type Change struct {
	ID       int64
	Metadata string // the JSON text of an object, or ""
	Deleted  bool
}

// fields are the values of metadata fields by item.
type fields struct {
	ids     []int64 // by row; 0 for an item that was removed
	rows    map[int64]int
	removed int
	columns map[string]*column
}

// column is the values of one field. Equal values are stored once.
type column struct {
	codes  []uint32 // by row
	values []any    // by code; the first stands for a field that is missing
	known  map[any]uint32
}

// encoded is the key of a list or an object.
type encoded string

func newFields(names []string) *fields {
	f := &fields{rows: map[int64]int{}, columns: map[string]*column{}}
	for _, name := range names {
		f.columns[name] = &column{values: []any{nil}, known: map[any]uint32{}}
	}
	return f
}

// has reports whether f has all fields of the filter.
func (f *fields) has(wanted filter.Filter) bool {
	return f != nil && !slices.ContainsFunc(wanted, func(c filter.Condition) bool { return f.columns[c.Field] == nil })
}

// put sets the metadata of an item, the JSON text of an object or "". Damaged
// metadata count as none.
func (f *fields) put(id int64, text []byte) {
	var object map[string]any
	if len(text) > 0 {
		if decoded, err := value.Decode(text); err == nil {
			object, _ = decoded.(map[string]any)
		}
	}
	row, ok := f.rows[id]
	if !ok {
		row = len(f.ids)
		f.rows[id], f.ids = row, append(f.ids, id)
	}
	for name, c := range f.columns {
		if row == len(c.codes) {
			c.codes = append(c.codes, 0)
		}
		c.codes[row] = c.code(filter.Lookup(object, name))
	}
}

// code returns the code of a value.
func (c *column) code(v any, found bool) uint32 {
	if !found {
		return 0
	}
	key := v
	switch v.(type) {
	case []any, map[string]any:
		text, _ := value.Encode(v) // it was decoded before
		key = encoded(text)
	}
	code, ok := c.known[key]
	if !ok {
		code = uint32(len(c.values))
		c.known[key], c.values = code, append(c.values, v)
	}
	return code
}

func (f *fields) remove(id int64) {
	if row, ok := f.rows[id]; ok {
		f.ids[row] = 0
		delete(f.rows, id)
		f.removed++
	}
}

// matching returns the ids of the items that match the filter.
func (f *fields) matching(wanted filter.Filter) []int64 {
	columns, verdicts := make([]*column, len(wanted)), make([][]bool, len(wanted))
	for i, condition := range wanted {
		columns[i] = f.columns[condition.Field]
		for code, v := range columns[i].values {
			verdicts[i] = append(verdicts[i], condition.Holds(v, code != 0))
		}
	}
	ids := []int64{}
rows:
	for row, id := range f.ids {
		for i, c := range columns {
			if !verdicts[i][c.codes[row]] {
				continue rows
			}
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Apply applies committed changes.
func (c *Cache) Apply(changes ...Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending != nil {
		c.pending = append(c.pending, changes...)
	}
	if c.fields == nil {
		return
	}
	c.fields.apply(changes)
	if c.fields.removed > len(c.fields.ids)/2 {
		c.fields = nil // the next filter reads them again
	}
}

// Reset drops all fields: the next filter reads them again. The owner calls it
// when the rows can have changed without Apply.
func (c *Cache) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fields, c.pending = nil, nil
}

func (f *fields) apply(changes []Change) {
	for _, one := range changes {
		if one.Deleted {
			f.remove(one.ID)
		} else {
			f.put(one.ID, []byte(one.Metadata))
		}
	}
}

// Matching returns the ids of the items that match the filter, in no order. The
// first filter that uses a field calls query, which selects the ids and the
// metadata of all items.
func (c *Cache) Matching(ctx context.Context, wanted filter.Filter, query func(ctx context.Context) (store.Rows, error)) ([]int64, error) {
	if ids, names := c.find(wanted); names == nil {
		return ids, nil
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	ids, names := c.find(wanted)
	if names == nil {
		return ids, nil
	}
	c.mu.Lock()
	c.pending = []Change{}
	c.mu.Unlock()
	f := newFields(names)
	err := f.read(ctx, query)
	c.mu.Lock()
	defer c.mu.Unlock()
	pending := c.pending
	c.pending = nil
	if err != nil {
		return nil, err
	}
	f.apply(pending) // applying a change twice has no effect
	if pending != nil {
		c.fields = f // otherwise Reset was called meanwhile
	}
	return f.matching(wanted), nil
}

func (f *fields) read(ctx context.Context, query func(ctx context.Context) (store.Rows, error)) error {
	rows, err := query(ctx)
	var id int64
	var text []byte
	return store.Scan(rows, err, func() { f.put(id, text) }, &id, &text)
}

// find returns the ids that match the filter, or the names of the fields to read.
func (c *Cache) find(wanted filter.Filter) (ids []int64, names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fields.has(wanted) {
		return c.fields.matching(wanted), nil
	}
	for _, condition := range wanted {
		names = append(names, condition.Field)
	}
	if c.fields != nil && len(names)+len(c.fields.columns) <= maxFields {
		for name := range c.fields.columns {
			names = append(names, name)
		}
	}
	return nil, names
}

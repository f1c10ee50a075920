package vectors

import (
	"context"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/filter"
)

// maxFields bounds the metadata fields that are kept in memory. When there
// would be more, those of the last filter are kept.
const maxFields = 16

// metadata keeps the fields that filters have used, so that a filter does not
// read all rows. The zero value is ready.
type metadata struct {
	reading sync.Mutex // held by the goroutine that reads fields

	mu     sync.Mutex // guards what follows
	fields *fields    // nil until the first filter
	// pending are the changes since the reading of fields began; nil if nobody
	// reads them.
	pending []change
}

// fields are the values of metadata fields by item.
type fields struct {
	ids     []int64 // by row; 0 for an item that was removed
	rows    map[int64]int
	removed int
	columns map[string]*column
}

// column is the values of one field. Equal values are kept once.
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

// has reports whether all fields of the filter are there.
func (f *fields) has(wanted filter.Filter) bool {
	return f != nil && !slices.ContainsFunc(wanted, func(c filter.Condition) bool { return f.columns[c.Field] == nil })
}

// put sets the metadata of an item, the JSON text of an object or "". A damaged
// text counts as none.
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

// matching returns the ids of the items that fit the filter.
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

// apply passes committed changes on.
func (m *metadata) apply(changes []change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending != nil {
		m.pending = append(m.pending, changes...)
	}
	if m.fields == nil {
		return
	}
	m.fields.apply(changes)
	if m.fields.removed > len(m.fields.ids)/2 {
		m.fields = nil // the next filter reads them again
	}
}

func (f *fields) apply(changes []change) {
	for _, one := range changes {
		if one.vector == nil {
			f.remove(one.id)
		} else {
			f.put(one.id, []byte(one.metadata))
		}
	}
}

// matching returns the ids of the collection's items that fit the filter. The
// first filter that uses a field reads the metadata of all items.
func (c *collection) matching(ctx context.Context, wanted filter.Filter) ([]int64, error) {
	m := &c.metadata
	find := func() (ids []int64, names []string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.fields.has(wanted) {
			return m.fields.matching(wanted), nil
		}
		for _, condition := range wanted {
			names = append(names, condition.Field)
		}
		if m.fields != nil && len(names)+len(m.fields.columns) <= maxFields {
			for name := range m.fields.columns {
				names = append(names, name)
			}
		}
		return nil, names
	}
	if ids, names := find(); names == nil {
		return ids, nil
	}
	m.reading.Lock()
	defer m.reading.Unlock()
	ids, names := find()
	if names == nil {
		return ids, nil
	}
	m.mu.Lock()
	m.pending = []change{}
	m.mu.Unlock()
	read, err := c.readFields(ctx, names)
	m.mu.Lock()
	defer m.mu.Unlock()
	pending := m.pending
	m.pending = nil
	if err != nil {
		return nil, err
	}
	read.apply(pending) // once more for those that were read, which changes nothing
	m.fields = read
	return read.matching(wanted), nil
}

func (c *collection) readFields(ctx context.Context, names []string) (*fields, error) {
	rows, err := c.x.o.Engine.Query(ctx, "SELECT id, metadata FROM vectors WHERE collection = ?", c.name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	f := newFields(names)
	for rows.Next() {
		var id int64
		var text []byte
		if err := rows.Scan(&id, &text); err != nil {
			return nil, err
		}
		f.put(id, text)
	}
	return f, rows.Err()
}

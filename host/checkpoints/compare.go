package checkpoints

import (
	"maps"
	"slices"
	"strconv"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/sdk/value"
)

// ChangeKind is the kind of a [Change].
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Change is a difference between two states.
type Change struct {
	// Key is the path in the state, such as readings[2].celsius.
	Key  string     `json:"key"`
	Kind ChangeKind `json:"change"`
	// From is the value in the first state, To the value in the second one.
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
}

// CompareStates returns the differences between two states, sorted by key. It
// does not change them; the result shares their values.
func CompareStates(a, b map[string]any) []Change {
	return objectChanges(nil, "", a, b)
}

func objectChanges(out []Change, at string, a, b map[string]any) []Change {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		place := key
		if at != "" {
			place = at + "." + key
		}
		was, inA := a[key]
		is, inB := b[key]
		switch {
		case !inA:
			out = append(out, Change{Key: place, Kind: Added, To: is})
		case !inB:
			out = append(out, Change{Key: place, Kind: Removed, From: was})
		default:
			out = valueChanges(out, place, was, is)
		}
	}
	return out
}

// valueChanges compares two values, descending into objects and lists.
func valueChanges(out []Change, at string, a, b any) []Change {
	if value.Equal(a, b) {
		return out
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return objectChanges(out, at, x, y)
		}
	case []any:
		if y, ok := b.([]any); ok {
			return listChanges(out, at, x, y)
		}
	}
	return append(out, Change{Key: at, Kind: Changed, From: a, To: b})
}

// listChanges compares lists index by index.
func listChanges(out []Change, at string, a, b []any) []Change {
	for i := range max(len(a), len(b)) {
		place := at + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(a):
			out = append(out, Change{Key: place, Kind: Added, To: b[i]})
		case i >= len(b):
			out = append(out, Change{Key: place, Kind: Removed, From: a[i]})
		default:
			out = valueChanges(out, place, a[i], b[i])
		}
	}
	return out
}

// Difference is a difference between two runs.
type Difference struct {
	// Kind and Path identify the record; Path is empty or the path of a node.
	Kind string `json:"kind"`
	Path string `json:"path,omitempty"`
	// Key is the path in the record; "" is the whole record.
	Key string `json:"key,omitempty"`
	// A and B are the values at Key, nil if a record has none.
	A any `json:"a"`
	B any `json:"b"`
	// OnlyA and OnlyB report that the other run has no such record.
	OnlyA bool `json:"only_a,omitempty"`
	OnlyB bool `json:"only_b,omitempty"`
}

type recordName struct{ kind, path string }

// Compare returns the differences between two runs: first those in records
// of the first run, in its order, then the records that only the second run has.
// It does not compare statuses.
func Compare(a, b *Contents) ([]Difference, error) {
	first, inFirst, err := named(a)
	if err != nil {
		return nil, err
	}
	second, inSecond, err := named(b)
	if err != nil {
		return nil, err
	}
	var out []Difference
	for _, name := range first {
		other, both := inSecond[name]
		if !both {
			out = append(out, Difference{Kind: name.kind, Path: name.path, A: inFirst[name], OnlyA: true})
			continue
		}
		for _, c := range valueChanges(nil, "", inFirst[name], other) {
			out = append(out, Difference{Kind: name.kind, Path: name.path, Key: c.Key, A: c.From, B: c.To})
		}
	}
	for _, name := range second {
		if _, both := inFirst[name]; !both {
			out = append(out, Difference{Kind: name.kind, Path: name.path, B: inSecond[name], OnlyB: true})
		}
	}
	return out, nil
}

// named returns the last body of each record by its name.
func named(c *Contents) ([]recordName, map[recordName]any, error) {
	var order []recordName
	bodies := map[recordName]any{}
	for _, rec := range c.Records {
		if rec.Kind == checkpoint.KindStatus {
			continue
		}
		body, err := Value(rec)
		if err != nil {
			return nil, nil, err
		}
		name := recordName{rec.Kind, rec.Path}
		if _, again := bodies[name]; !again {
			order = append(order, name)
		}
		bodies[name] = body
	}
	return order, bodies, nil
}

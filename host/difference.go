package host

import (
	"maps"
	"slices"
	"strconv"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Difference is a place in which two runs differ.
type Difference struct {
	// Kind and Path name the record: what happened, and to which node.
	Kind string `json:"kind"`
	Path string `json:"path,omitempty"`
	// Key is the place in the record; "" is all of it.
	Key string `json:"key,omitempty"`
	// A and B are what stands there; nil also where one has nothing.
	A any `json:"a"`
	B any `json:"b"`
	// OnlyA and OnlyB say that the other run has no such record.
	OnlyA bool `json:"only_a,omitempty"`
	OnlyB bool `json:"only_b,omitempty"`
}

type recordName struct{ kind, path string }

// CompareRuns finds what two runs did differently, in the order of the first
// run's records, then those that only the second one has. How they stand is
// no difference.
func CompareRuns(a, b *RunContents) ([]Difference, error) {
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
		d := Difference{Kind: name.kind, Path: name.path}
		if !both {
			d.A, d.OnlyA = inFirst[name], true
			out = append(out, d)
			continue
		}
		out = appendDifferences(out, d, inFirst[name], other)
	}
	for _, name := range second {
		if _, both := inFirst[name]; !both {
			out = append(out, Difference{Kind: name.kind, Path: name.path, B: inSecond[name], OnlyB: true})
		}
	}
	return out, nil
}

// named gives the last body of each record by its name.
func named(c *RunContents) ([]recordName, map[recordName]any, error) {
	var order []recordName
	bodies := map[recordName]any{}
	for _, rec := range c.Records {
		if rec.Kind == "status" {
			continue
		}
		body, err := RecordValue(rec)
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

// appendDifferences goes into objects and lists of equal length.
func appendDifferences(out []Difference, at Difference, a, b any) []Difference {
	if value.Equal(a, b) {
		return out
	}
	inner := func(key string, a, b any) {
		next := at
		next.Key += key
		out = appendDifferences(out, next, a, b)
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			keys := maps.Clone(x)
			maps.Copy(keys, y)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				dot := "."
				if at.Key == "" {
					dot = ""
				}
				inner(dot+key, x[key], y[key])
			}
			return out
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				inner("["+strconv.Itoa(i)+"]", x[i], y[i])
			}
			return out
		}
	}
	at.A, at.B = a, b
	return append(out, at)
}

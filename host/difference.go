package host

import "github.com/the-edge-agent/tea/host/internal/checkpoint"

// Difference is a place where two runs differ.
type Difference struct {
	// Kind and Path name the record: what happened, and to which node.
	Kind string `json:"kind"`
	Path string `json:"path,omitempty"`
	// Key is the place in the record; "" is all of it.
	Key string `json:"key,omitempty"`
	// A and B are the values there; nil also where one has none.
	A any `json:"a"`
	B any `json:"b"`
	// OnlyA and OnlyB say that the other run has no such record.
	OnlyA bool `json:"only_a,omitempty"`
	OnlyB bool `json:"only_b,omitempty"`
}

type recordName struct{ kind, path string }

// CompareRuns returns what two runs did differently, in the order of the first
// run's records, then what only the second one has. Their statuses are not
// compared.
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
func named(c *RunContents) ([]recordName, map[recordName]any, error) {
	var order []recordName
	bodies := map[recordName]any{}
	for _, rec := range c.Records {
		if rec.Kind == checkpoint.KindStatus {
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

package graph

import (
	"encoding/json"
	"maps"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// history is what an entity remembers of its properties, as [store.Entity.Facts]
// has it.
type history struct {
	// Since has the current values whose beginning or source is known.
	Since map[string]since `json:"since,omitempty"`
	// Former are the values that were valid before, in the order of their ends.
	Former []fact `json:"former,omitempty"`
	// Dropped is the number of former values that were removed because of the
	// limit.
	Dropped int `json:"dropped,omitempty"`
}

// since is from when a value is valid, and who says so.
type since struct {
	From   int64  `json:"from"`
	Source string `json:"source,omitempty"`
}

// fact is a former value of a property.
type fact struct {
	Property string `json:"property"`
	Value    any    `json:"value"`
	From     int64  `json:"from"`
	To       int64  `json:"to"`
	Source   string `json:"source,omitempty"`
}

// UnmarshalJSON keeps integers exact.
func (f *fact) UnmarshalJSON(text []byte) error {
	decoded, err := value.Decode(text)
	if err != nil {
		return err
	}
	type plain fact
	return value.Into(decoded, (*plain)(f))
}

func readHistory(text string) (*history, error) {
	h := &history{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), h); err != nil {
			return nil, tea.Errorf(tea.InternalError, "the stored facts of an entity are damaged: %w", err)
		}
	}
	return h, nil
}

// text is the form in which a history is stored.
func (h *history) text() (string, error) {
	if len(h.Since) == 0 && len(h.Former) == 0 && h.Dropped == 0 {
		return "", nil
	}
	model, err := value.From(h)
	if err != nil {
		return "", err
	}
	text, err := value.Encode(model)
	return string(text), err
}

// change is a set of values that hold from an instant on.
type change struct {
	at     int64
	source string
	// dated reports whether the caller gave the instant.
	dated bool
	limit int
}

// apply makes the properties of next those of an entity whose properties were
// now. A value that ends becomes a former one. It returns the properties that are
// valid without an end.
func (h *history) apply(now, next map[string]any, c change) map[string]any {
	result := maps.Clone(now)
	if result == nil {
		result = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(merged(now, next))) {
		old, had := now[name]
		v, has := next[name]
		begun, dated := h.Since[name]
		from := store.Always
		if dated {
			from = begun.From
		}
		switch {
		case had && has && value.Equal(old, v):
			if c.dated && c.at < from {
				h.begin(name, since{From: c.at, Source: begun.Source})
			}
		case had && c.at < from:
			// It is about the time before the current value.
			if has {
				h.insert(fact{Property: name, Value: v, From: c.at, To: from, Source: c.source})
			}
		default:
			if had && c.at > from && c.limit >= 0 {
				h.Former = append(h.Former, fact{Property: name, Value: old, From: from, To: c.at, Source: begun.Source})
			}
			delete(h.Since, name)
			delete(result, name)
			if has {
				result[name] = v
				if c.dated || had || c.source != "" {
					h.begin(name, since{From: c.beginning(had), Source: c.source})
				}
			}
		}
	}
	h.trim(c.limit)
	return result
}

// beginning is when a new value begins: a first value without a date always was.
func (c change) beginning(replaces bool) int64 {
	if c.dated || replaces {
		return c.at
	}
	return store.Always
}

func (h *history) begin(name string, s since) {
	if h.Since == nil {
		h.Since = map[string]since{}
	}
	h.Since[name] = s
}

// insert adds a fact about the past. It ends where the next one begins, and ends
// the one before.
func (h *history) insert(f fact) {
	for i := range h.Former {
		other := &h.Former[i]
		switch {
		case other.Property != f.Property:
		case other.From == f.From:
			other.Value, other.Source = f.Value, f.Source
			return
		case other.From > f.From:
			f.To = min(f.To, other.From)
		case other.To > f.From:
			if value.Equal(other.Value, f.Value) {
				return
			}
			f.To = min(f.To, other.To)
			other.To = f.From
		}
	}
	h.Former = append(h.Former, f)
}

// trim drops the oldest former values beyond the limit.
func (h *history) trim(limit int) {
	slices.SortStableFunc(h.Former, func(a, b fact) int {
		switch {
		case a.To != b.To && a.To < b.To:
			return -1
		case a.To != b.To:
			return 1
		}
		return 0
	})
	if n := len(h.Former) - max(limit, 0); n > 0 {
		h.Former = slices.Clone(h.Former[n:])
		h.Dropped += n
	}
}

// at returns the properties that were valid at an instant.
func (h *history) at(now map[string]any, instant int64) map[string]any {
	result := map[string]any{}
	for name, v := range now {
		if s, ok := h.Since[name]; !ok || s.From <= instant {
			result[name] = v
		}
	}
	for _, f := range h.Former {
		if f.From <= instant && instant < f.To {
			result[f.Property] = f.Value
		}
	}
	return result
}

// merged has the members of both.
func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

// Fact is a value of a property and when it was valid.
type Fact struct {
	Property  string `json:"property"`
	Value     any    `json:"value"`
	ValidFrom string `json:"valid_from" doc:"empty if it is not known"`
	ValidTo   string `json:"valid_to" doc:"empty if it is still valid"`
	Source    string `json:"source"`
}

// facts lists all values, by property and time.
func (h *history) facts(now map[string]any) []Fact {
	all := slices.Clone(h.Former)
	for name, v := range now {
		f := fact{Property: name, Value: v, From: store.Always, To: store.Forever}
		if s, ok := h.Since[name]; ok {
			f.From, f.Source = s.From, s.Source
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b fact) int {
		return (store.RelationKey{From: a.Property, ValidFrom: a.From}).Compare(store.RelationKey{From: b.Property, ValidFrom: b.From})
	})
	list := make([]Fact, len(all))
	for i, f := range all {
		list[i] = Fact{Property: f.Property, Value: f.Value, ValidFrom: store.FormatInstant(f.From), ValidTo: store.FormatInstant(f.To), Source: f.Source}
	}
	return list
}

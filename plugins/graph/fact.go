package graph

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// history holds the changes of an entity's properties and text, as stored in
// [store.Entity.Facts]. [store.Entity.Properties] and [store.Entity.Text] hold the values
// that are valid without an end.
type history struct {
	// Ahead reports whether a value began or ended in the future when the history was
	// stored. If it is not set, the entity's properties are valid now.
	Ahead bool `json:"ahead,omitempty"`
	// Since has the values without an end whose start or source is known.
	Since map[string]since `json:"since,omitempty"`
	// Former are the other values, ordered by end.
	Former []fact `json:"former,omitempty"`
	// Dropped is the number of former values that were removed to meet the limit.
	Dropped int `json:"dropped,omitempty"`
	// TextSource is the source of the text if Since does not have it; nil for the source of
	// the entity. Earlier versions wrote it.
	TextSource *string `json:"text_source,omitempty"`
}

// textName stands for an entity's text among the names of its properties. It is not a
// valid name of a property.
const textName = ""

// aheadPrefix begins a history whose Ahead is set.
const aheadPrefix = `{"ahead":true`

// since is the start of a value, and its source.
type since struct {
	From   int64  `json:"from"`
	Source string `json:"source,omitempty"`
}

// fact is a value of a property with the time in which it is valid.
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
			return nil, store.Damaged("stored facts: %w", err)
		}
	}
	return h, nil
}

// readFacts returns the values of an entity that are valid without an end, including its
// text, and its history.
func readFacts(e *store.Entity) (map[string]any, *history, error) {
	values, err := readProperties(e.Properties)
	if err != nil {
		return nil, nil, err
	}
	h, err := readHistory(e.Facts)
	if err != nil || e.Text == "" {
		return values, h, err
	}
	values = merged(values, map[string]any{textName: e.Text})
	if _, known := h.Since[textName]; !known {
		source := e.Source
		if h.TextSource != nil {
			source = *h.TextSource
		}
		h.begin(textName, since{From: store.Always, Source: source})
	}
	h.TextSource = nil
	return values, h, nil
}

// write sets the values of an entity that are valid without an end, including its text, and
// its history.
func (h *history) write(e *store.Entity, values map[string]any) (err error) {
	e.Text, _ = values[textName].(string)
	delete(values, textName)
	if h.Since[textName] == (since{From: store.Always, Source: e.Source}) {
		delete(h.Since, textName) // the default of readFacts
	}
	if e.Properties, err = value.Encode(values); err == nil {
		e.Facts, err = h.text()
	}
	return err
}

// text returns the stored form of a history.
func (h *history) text() (string, error) {
	if len(h.Since) == 0 && len(h.Former) == 0 && h.Dropped == 0 && h.TextSource == nil {
		return "", nil
	}
	model, err := value.From(h)
	if err != nil {
		return "", err
	}
	text, err := value.Encode(model)
	return string(text), err
}

// change is a change of an entity's properties.
type change struct {
	// given are the properties; a null ends one. If replace is set, properties that
	// are not given end, too.
	given   map[string]any
	replace bool
	// at is the start of the change. If dated is not set, it is now.
	at, now int64
	dated   bool
	source  string
	limit   int
}

// apply changes the properties of an entity. It returns the values without an end, and
// reports whether the change leaves the present unaffected.
func (h *history) apply(properties map[string]any, c *change) (result map[string]any, other bool) {
	names := map[string]any{}
	maps.Copy(names, c.given)
	if c.replace {
		maps.Copy(names, properties)
		for i := range h.Former {
			names[h.Former[i].Property] = nil
		}
	}
	result = maps.Clone(properties)
	if result == nil {
		result = map[string]any{}
	}
	other = len(names) > 0
	for name := range names {
		all, present := c.put(name, h.take(name, result))
		other = other && !present
		for i := range all {
			if all[i].To < store.Forever {
				h.Former = append(h.Former, all[i])
				continue
			}
			result[name] = all[i].Value
			if all[i].From != store.Always || all[i].Source != "" {
				h.begin(name, since{From: all[i].From, Source: all[i].Source})
			}
		}
	}
	h.trim(c.limit, c.now)
	h.trimTexts(c.now)
	h.mark(c.now)
	return result, other
}

// take removes all values of a property and returns them in order of time.
func (h *history) take(name string, properties map[string]any) []fact {
	var all []fact
	h.Former = slices.DeleteFunc(h.Former, func(f fact) bool {
		if f.Property == name {
			all = append(all, f)
		}
		return f.Property == name
	})
	sortFacts(all)
	if v, ok := properties[name]; ok {
		all = append(all, h.current(name, v))
		delete(properties, name)
		delete(h.Since, name)
	}
	return all
}

// current returns the value of a property that is valid without an end.
func (h *history) current(name string, v any) fact {
	f := fact{Property: name, Value: v, From: store.Always, To: store.Forever}
	if s, ok := h.Since[name]; ok {
		f.From, f.Source = s.From, s.Source
	}
	return f
}

// put changes the values of a property, which are in order of time: the value that is
// valid at c.at ends there, and the new one lasts until the next one begins. It reports
// whether that changes or confirms the present value.
func (c *change) put(name string, all []fact) (changed []fact, present bool) {
	v := c.given[name]
	until := store.Forever
	for _, f := range all {
		switch {
		case f.From > c.at && v == nil && !c.dated:
			// The removal is permanent.
		case f.From > c.at:
			until = min(until, f.From)
			changed = append(changed, f)
		case f.To > c.at && v != nil && value.Equal(f.Value, v):
			return all, c.at <= c.now && f.To > c.now
		case f.To > c.at:
			until = f.To
			if f.To = c.at; f.From < f.To {
				changed = append(changed, f)
			}
		default:
			changed = append(changed, f)
		}
	}
	present = c.at <= c.now && until > c.now
	if v == nil {
		return changed, present
	}
	f := fact{Property: name, Value: v, From: c.at, To: until, Source: c.source}
	if len(all) == 0 && !c.dated {
		f.From = store.Always
	}
	for i := range changed {
		if changed[i].From == until && value.Equal(changed[i].Value, v) {
			changed[i].From = f.From
			return changed, present
		}
	}
	changed = append(changed, f)
	sortFacts(changed)
	return changed, present
}

func (h *history) begin(name string, s since) {
	if h.Since == nil {
		h.Since = map[string]since{}
	}
	h.Since[name] = s
}

// sortFacts sorts by property and time.
func sortFacts(all []fact) {
	slices.SortFunc(all, func(a, b fact) int { return cmp.Or(cmp.Compare(a.Property, b.Property), cmp.Compare(a.From, b.From)) })
}

// trim drops the oldest ended values beyond the limit.
func (h *history) trim(limit int, now int64) {
	slices.SortFunc(h.Former, func(a, b fact) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Property, b.Property), cmp.Compare(a.From, b.From))
	})
	ended, _ := slices.BinarySearchFunc(h.Former, now+1, func(f fact, at int64) int { return cmp.Compare(f.To, at) })
	n := ended - max(limit, 0)
	if n <= 0 {
		return
	}
	h.Former = slices.Clone(h.Former[n:])
	if limit >= 0 {
		h.Dropped += n
	}
}

// maxFormerTexts is the maximum size of an entity's former texts in bytes.
const maxFormerTexts = 16 << 10

// trimTexts drops the oldest ended texts beyond maxFormerTexts.
func (h *history) trimTexts(now int64) {
	left := maxFormerTexts
	for i := len(h.Former) - 1; i >= 0; i-- {
		f := &h.Former[i]
		if text, ok := f.Value.(string); f.Property != textName || !ok || f.To > now {
			continue
		} else if left -= len(text); left < 0 {
			h.Former = slices.Delete(h.Former, i, i+1)
			h.Dropped++
		}
	}
}

func (h *history) mark(now int64) {
	h.Ahead = false
	for i := range h.Former {
		h.Ahead = h.Ahead || h.Former[i].To > now
	}
	for _, s := range h.Since {
		h.Ahead = h.Ahead || s.From > now
	}
}

// valid returns the values that were valid at an instant, by property.
func (h *history) valid(properties map[string]any, at int64) []fact {
	all := make([]fact, 0, len(properties))
	for name, v := range properties {
		if f := h.current(name, v); f.From <= at {
			all = append(all, f)
		}
	}
	for _, f := range h.Former {
		if f.From <= at && at < f.To {
			all = append(all, f)
		}
	}
	sortFacts(all)
	return all
}

// setAt sets an entity to its values at an instant. Its source is the source of the newest
// fact that is valid then, preferably the entity's source.
func (h *history) setAt(e *Entity, values map[string]any, at int64) {
	stored, newest := e.Source, store.Always
	e.Properties, e.Text, e.Source = map[string]any{}, "", ""
	for _, f := range h.valid(values, at) {
		if f.Property == textName {
			e.Text, _ = f.Value.(string)
		} else {
			e.Properties[f.Property] = f.Value
		}
		if f.From > newest || f.From == newest && (e.Source == "" || f.Source == stored) {
			newest, e.Source = f.From, f.Source
		}
	}
}

// merged returns the members of both; b takes precedence.
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
	Property  string `json:"property" doc:"empty for the entity's text"`
	Value     any    `json:"value"`
	ValidFrom string `json:"valid_from" doc:"empty if it is not known"`
	ValidTo   string `json:"valid_to" doc:"empty if it is still valid"`
	Source    string `json:"source"`
}

// facts lists all values, by property and time.
func (h *history) facts(properties map[string]any) []Fact {
	all := slices.Clone(h.Former)
	for name, v := range properties {
		all = append(all, h.current(name, v))
	}
	sortFacts(all)
	list := make([]Fact, len(all))
	for i, f := range all {
		list[i] = Fact{Property: f.Property, Value: f.Value, ValidFrom: store.FormatInstant(f.From), ValidTo: store.FormatInstant(f.To), Source: f.Source}
	}
	return list
}

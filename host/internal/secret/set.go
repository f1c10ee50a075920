// Package secret keeps the values of secrets out of everything that tea prints
// or stores. Output has *** instead; a checkpoint has a reference that is
// resolved on resume. Start with [New]; [Set.Stream] masks text that arrives in
// pieces.
package secret

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Mask replaces secrets in output.
const Mask = "***"

// Set has the secrets of a run. The nil Set is empty. It is immutable and safe
// for concurrent use.
type Set struct {
	values map[string]any
	leaves []leaf
	// short are the secrets that are masked only as a whole value.
	short []leaf
	// unmasked has the names of numbers that are too short to be masked at all.
	unmasked []string
	// numbers has the replacement in a checkpoint for each form of a secret that
	// is a number or looks like one, by its text in output.
	numbers map[string]string
	finder  *automaton
	// references has the replacement in a checkpoint for each form.
	references map[string]string
}

// leaf is one string among the secrets.
type leaf struct {
	// name is the path in the notation of templates, such as db.password or
	// ["mail.password"]; it is unique.
	name string
	text string
	// old is the name in checkpoints from before names were quoted.
	old string
	// hidden leaves come after the caller's secrets.
	hidden bool
}

// settingsKey is the first name of hidden leaves. A secret with that name is
// quoted.
const settingsKey = "settings"

// minSearchable is the length below which a secret is masked only as a whole value:
// "a" must not be masked in every word.
const minSearchable = 4

// New returns the set of the secrets by name; values can be nested objects. hidden
// has further values to mask, by their path in checkpoints, which begins with
// settings; they are not available to templates.
func New(values, hidden map[string]any) *Set {
	if len(values)+len(hidden) == 0 {
		return nil
	}
	s := &Set{values: values, numbers: map[string]string{}, references: map[string]string{}}
	for name, v := range values {
		path := diag.Key("", name)
		if name == settingsKey {
			path = "[" + strconv.Quote(name) + "]"
		}
		s.collect(leaf{name: path, old: name}, v)
	}
	for path, v := range hidden {
		s.collect(leaf{name: path, old: path, hidden: true}, v)
	}
	if len(s.leaves)+len(s.short) == 0 && len(values) == 0 {
		return nil
	}
	// The longest first: its name is used if two secrets have equal forms.
	sort.Slice(s.leaves, func(i, j int) bool {
		a, b := s.leaves[i], s.leaves[j]
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name, b.name)) < 0
	})
	found, size := make([][]string, len(s.leaves)), 1
	for i, l := range s.leaves {
		found[i] = patterns(l.text)
		for _, p := range found[i] {
			size += len(p)
		}
	}
	s.finder = newAutomaton(size)
	for i, l := range s.leaves {
		for _, p := range found[i] {
			s.finder.add(p, int32(i))
		}
		for _, f := range forms(l.text) {
			if _, taken := s.references[f.text]; !taken {
				s.references[f.text] = reference(l.name, f.as)
			}
		}
		for _, n := range numbersOf(l.text) {
			text := numberText(n.number)
			if _, taken := s.numbers[text]; !taken && len(text) >= minSearchable {
				s.numbers[text] = reference(l.name, n.as)
			}
		}
	}
	s.finder.link()
	return s
}

func rank(l leaf) int {
	if l.hidden {
		return 1
	}
	return 0
}

// collect adds the strings and numbers of v, which has the path of l.
func (s *Set) collect(l leaf, v any) {
	switch v := v.(type) {
	case string:
		s.add(l, v)
	case int64, float64, json.Number:
		if text := numberText(v); len(text) >= minSearchable {
			s.add(l, text)
		} else if !l.hidden {
			s.unmasked = append(s.unmasked, l.name)
		}
	case map[string]any:
		for k, e := range v {
			s.collect(leaf{name: diag.Key(l.name, k), old: l.old + "." + k, hidden: l.hidden}, e)
		}
	case []any:
		for i, e := range v {
			s.collect(leaf{name: diag.Index(l.name, i), old: diag.Index(l.old, i), hidden: l.hidden}, e)
		}
	}
}

func (s *Set) add(l leaf, text string) {
	l.text = text
	switch {
	case text == "":
	case len(text) < minSearchable:
		s.short = append(s.short, l)
	default:
		s.leaves = append(s.leaves, l)
	}
}

// Short returns the names of the secrets that are too short to be masked inside
// other text.
func (s *Set) Short() []string {
	if s == nil {
		return nil
	}
	names := slices.Clone(s.unmasked)
	for _, l := range s.short {
		names = append(names, l.name)
	}
	slices.Sort(names)
	return names
}

// Equal reports whether both sets have the same secrets under the same names.
func (s *Set) Equal(other *Set) bool {
	if s == nil || other == nil {
		return s == other
	}
	count := map[leaf]int{}
	for _, l := range slices.Concat(s.leaves, s.short) {
		count[l]++
	}
	for _, l := range slices.Concat(other.leaves, other.short) {
		count[l]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// Values returns the secrets for templates. The caller must not change them.
func (s *Set) Values() map[string]any {
	if s == nil {
		return nil
	}
	return s.values
}

// Text masks the secrets in a text, in linear time.
func (s *Set) Text(text string) string {
	if s == nil || text == "" {
		return text
	}
	if _, is := s.shortSecret(text); is {
		return Mask
	}
	regions, _ := s.find(text, complete)
	return replace(text, regions, func(region) string { return Mask }, nil)
}

// shortSecret reports whether a text is a secret that is too short to be searched for.
func (s *Set) shortSecret(text string) (name string, is bool) {
	if len(text) < minSearchable {
		for _, l := range s.short {
			if l.text == text {
				return l.name, true
			}
		}
	}
	return "", false
}

// find finds the secrets in a text, as written and in its canonical form. The text
// after rest may be the beginning of a secret or of an escape.
func (s *Set) find(text string, end ending) (regions []region, rest int) {
	regions, rest = scan(s.finder, text, end)
	if !hasEscapes(text) {
		return regions, rest
	}
	c, length := canonicalise(text), len(text)
	if end == toBeContinued {
		c.text, length = c.text[:c.known], c.open
	}
	more, open := scan(s.finder, c.text, end)
	rest = min(rest, c.original(open, length))
	if len(more) == 0 {
		return regions, rest
	}
	for _, r := range more {
		regions = append(regions, region{c.original(r.start, length), c.original(r.end, length), r.owner})
	}
	sort.SliceStable(regions, func(i, j int) bool { return regions[i].start < regions[j].start })
	merged := regions[:0]
	for _, r := range regions {
		merged = cover(merged, r)
	}
	return merged, rest
}

// replace returns a text with its regions replaced, and with between applied to
// the parts between them, unless it is nil.
func replace(text string, regions []region, instead func(region) string, between func(string) string) string {
	if between == nil {
		between = func(part string) string { return part }
	}
	if len(regions) == 0 {
		return between(text)
	}
	var b strings.Builder
	end := 0
	for _, r := range regions {
		b.WriteString(between(text[end:r.start]))
		b.WriteString(instead(r))
		end = r.end
	}
	b.WriteString(between(text[end:]))
	return b.String()
}

// Redact masks the secrets in a value and in its keys. It does not change v;
// parts without secrets are shared.
func (s *Set) Redact(v any) any {
	if s == nil {
		return v
	}
	out, _ := rewrite(v, s.Text, s.maskNumber)
	return out
}

// In reports whether a value contains secrets.
func (s *Set) In(v any) bool {
	if s == nil {
		return false
	}
	_, changed := rewrite(v, s.Text, s.maskNumber)
	return changed
}

func (s *Set) maskNumber(v any) any {
	if _, is := s.numbers[numberText(v)]; is {
		return Mask
	}
	return v
}

// numberText returns a number as in output; "" if it has no JSON form.
func numberText(v any) string {
	text, err := value.Encode(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// rewrite applies text to every string and number to every number, unless they
// are nil. changed reports whether the result is new.
func rewrite(v any, text func(string) string, number func(any) any) (out any, changed bool) {
	switch v := v.(type) {
	case string:
		n := text(v)
		return n, n != v
	case int64, float64, json.Number:
		n := number(v)
		return n, n != v
	case []any:
		var list []any
		for i, e := range v {
			n, c := rewrite(e, text, number)
			if c && list == nil {
				list = slices.Clone(v)
			}
			if c {
				list[i] = n
			}
		}
		if list != nil {
			return list, true
		}
	case map[string]any:
		return rewriteObject(v, text, number)
	}
	return v, false
}

func rewriteObject(m map[string]any, text func(string) string, number func(any) any) (any, bool) {
	out, renamed := m, false
	changed := false
	for k, e := range m {
		n, c := rewrite(e, text, number)
		if c && !changed {
			out, changed = maps.Clone(m), true
		}
		if c {
			out[k] = n
		}
		renamed = renamed || text(k) != k
	}
	if !renamed {
		return out, changed
	}
	all := make(map[string]any, len(m))
	for k, e := range out {
		all[text(k)] = e
	}
	return all, true
}

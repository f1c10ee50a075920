// Package secret keeps the values of secrets out of everything tea prints or
// stores. Output gets *** in their place; a checkpoint gets a reference that
// is resolved again on resume. Start with [New].
package secret

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Mask stands in output where a secret was.
const Mask = "***"

// Set is the secrets of a run. The nil Set has none. It is immutable and safe
// for concurrent use.
type Set struct {
	values map[string]any
	leaves []leaf
	// numbers are the secrets that are or look like numbers, as text.
	numbers map[string]bool
	mask    *strings.Replacer
	// masked are the texts that mask replaces.
	masked []string
	seal   *strings.Replacer
}

// leaf is one string among the secrets, with its path such as "db.password".
type leaf struct{ name, text string }

// wholeOnly is the length below which a secret is masked only where it is a
// whole value: "a" must not turn every word with an a into stars.
const wholeOnly = 4

// New takes the secrets by name; values may be nested objects.
func New(values map[string]any) *Set {
	if len(values) == 0 {
		return nil
	}
	s := &Set{values: values, numbers: map[string]bool{}}
	s.collect("", values)
	// The longest first, so that a secret inside another leaves no rest.
	slices.SortFunc(s.leaves, func(a, b leaf) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.name, b.name))
	})
	var sealed []sealing
	var masked []string
	for _, l := range s.leaves {
		if len(l.text) >= wholeOnly {
			for _, f := range forms(l.text) {
				sealed = append(sealed, sealing{f.text, reference(l.name, f.as)})
				masked = append(masked, f.text)
			}
		}
	}
	s.masked = masked
	s.mask = masker(masked)
	s.seal = sealer(sealed)
	return s
}

// masker replaces texts, of two that begin at one place the longer.
func masker(texts []string) *strings.Replacer {
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(texts))
	for _, t := range slices.Compact(texts) {
		pairs = append(pairs, t, Mask)
	}
	return strings.NewReplacer(pairs...)
}

func (s *Set) collect(path string, v any) {
	switch v := v.(type) {
	case string:
		if v != "" {
			s.leaves = append(s.leaves, leaf{path, v})
		}
		if len(v) >= wholeOnly && isDigits(v) { // one conversion away
			s.numbers[v] = true
		}
	case int64, float64, json.Number:
		if text := numberText(v); len(text) >= wholeOnly {
			s.leaves = append(s.leaves, leaf{path, text})
			s.numbers[text] = true
		}
	case map[string]any:
		for k, e := range v {
			if path != "" {
				k = path + "." + k
			}
			s.collect(k, e)
		}
	case []any:
		for i, e := range v {
			s.collect(fmt.Sprintf("%s[%d]", path, i), e)
		}
	}
}

func isDigits(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// Values are the secrets as templates see them; to read only.
func (s *Set) Values() map[string]any {
	if s == nil {
		return nil
	}
	return s.values
}

// Text masks the secrets in a text.
func (s *Set) Text(text string) string {
	if s == nil {
		return text
	}
	for _, l := range s.leaves {
		if len(l.text) < wholeOnly && l.text == text {
			return Mask
		}
	}
	return s.withoutCut(s.mask.Replace(text))
}

// Redact masks the secrets in a value and in its keys. What holds none is
// returned as it is; v is not changed.
func (s *Set) Redact(v any) any {
	if s == nil {
		return v
	}
	out, _ := rewrite(v, s.Text)
	if len(s.numbers) > 0 {
		out = s.redactNumbers(out)
	}
	return out
}

// redactNumbers gives a copy in which the numbers that are secrets are masked.
func (s *Set) redactNumbers(v any) any {
	switch v := v.(type) {
	case int64, float64, json.Number:
		if s.numbers[numberText(v)] {
			return Mask
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = s.redactNumbers(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = s.redactNumbers(e)
		}
		return out
	}
	return v
}

// numberText is a number as it looks in output; "" where it has no JSON form.
func numberText(v any) string {
	text, err := value.Encode(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// rewrite applies f to every string; changed tells whether the result is new.
func rewrite(v any, f func(string) string) (out any, changed bool) {
	switch v := v.(type) {
	case string:
		n := f(v)
		return n, n != v
	case []any:
		var list []any
		for i, e := range v {
			n, c := rewrite(e, f)
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
		return rewriteObject(v, f)
	}
	return v, false
}

func rewriteObject(m map[string]any, f func(string) string) (any, bool) {
	changed := false
	out := make(map[string]any, len(m))
	for k, e := range m {
		n, c := rewrite(e, f)
		key := f(k)
		changed = changed || c || key != k
		out[key] = n
	}
	if !changed {
		return m, false
	}
	return out, true
}

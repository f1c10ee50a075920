package jsonschema

import (
	"regexp"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Keywords that JSON Schema does not have: they relate one value to another.
const (
	// keywordKeyOf has the name of a member of the same object, or, after a slash, of the
	// whole value. The text is one of the keys of this member, which is an object.
	keywordKeyOf = "x-tea-keyOf"
	// keywordKeyPattern is a regular expression with one group. Instead of the whole text,
	// the groups of all its matches are keys.
	keywordKeyPattern = "x-tea-keyPattern"
	// keywordAtMost has the name of a member of the same object. The number is not above it.
	keywordAtMost = "x-tea-atMost"
)

// keyRule is keywordKeyOf with keywordKeyPattern.
type keyRule struct {
	of      string
	pattern *regexp.Regexp // nil = the whole text
}

func (k *keywords) keys() *keyRule {
	if !k.has(keywordKeyOf) {
		return nil
	}
	rule := &keyRule{of: k.text(keywordKeyOf)}
	if k.has(keywordKeyPattern) {
		rule.pattern = k.pattern(keywordKeyPattern, k.text(keywordKeyPattern))
		if rule.pattern.NumSubexp() != 1 {
			k.fail(keywordKeyPattern, "expected one group")
		}
	}
	return rule
}

// at returns the value at a place; nil if it is unknown.
func (r *run) at(p *place) any {
	if p == nil {
		return r.value
	}
	switch outer := r.at(p.parent).(type) {
	case map[string]any:
		return outer[p.name]
	case []any:
		return outer[p.index]
	}
	return nil
}

// beside returns a member of the object that contains the place, or, if the name begins with
// a slash, of the whole value. It is nil and unknown if it is a template.
func (r *run) beside(at *place, name string) (member any, known bool) {
	top, isTop := strings.CutPrefix(name, "/")
	for ; at != nil; at = at.parent {
		object, ok := r.at(at.parent).(map[string]any)
		if !ok || isTop && at.parent != nil {
			continue
		}
		templated := r.isTemplate != nil && r.isTemplate(at.parent.member(top).String())
		return object[top], !templated
	}
	return nil, false
}

func (r *run) checkKeys(rule *keyRule, s string, at *place) {
	target, ok := r.beside(at, rule.of)
	entries, isObject := target.(map[string]any)
	if !ok || target != nil && !isObject {
		return
	}
	names := []string{s}
	if rule.pattern != nil {
		names = nil
		for _, match := range rule.pattern.FindAllStringSubmatch(s, -1) {
			names = append(names, match[1])
		}
	}
	for _, name := range names {
		if _, ok := entries[name]; ok {
			continue
		}
		hint := diag.Suggest(name, sortedKeys(entries))
		wanted := "is not in " + strings.TrimPrefix(rule.of, "/")
		r.report(Problem{Path: at.String(), Message: withHint(quote(name)+" "+wanted, hint), Wanted: wanted, Hint: hint})
	}
}

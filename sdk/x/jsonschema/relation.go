package jsonschema

import (
	"regexp"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Extensions of JSON Schema that relate one value to another.
const (
	// keywordKeyOf is the name of a member of the same object or, after a slash, of the
	// whole value. The text must be a key of this member, which is an object.
	keywordKeyOf = "x-tea-keyOf"
	// keywordKeyPattern is a regular expression with one group. Instead of the whole text,
	// the group of each match must be a key.
	keywordKeyPattern = "x-tea-keyPattern"
	// keywordAtMost is the name of a member of the same object. The number must not exceed it.
	keywordAtMost = "x-tea-atMost"
)

// keyRule combines keywordKeyOf and keywordKeyPattern.
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

// beside returns a member of the object that contains the place or, if the name begins with
// a slash, of the whole value. A member that is a template is nil and unknown.
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

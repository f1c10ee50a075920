package jsonschema

import (
	"fmt"
	"regexp"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// objectRules are the keywords for objects.
type objectRules struct {
	properties       map[string]*node
	names            []string // of properties, sorted
	fallbacks        []string // properties with a default, sorted
	patterns         []patternRule
	additional       *node
	nameRule         *node
	required         []string
	min, max         int // -1 if absent
	dependent        map[string][]string
	dependentNames   []string
	dependentSchemas map[string]*node
	unevaluated      *node
}

type patternRule struct {
	pattern *regexp.Regexp
	rule    *node
}

func (k *keywords) objects() *objectRules {
	if !k.has("properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties", "maxProperties",
		"dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties") {
		return nil
	}
	rules := &objectRules{
		properties:       k.schemaMap("properties"),
		additional:       k.schema("additionalProperties"),
		nameRule:         k.schema("propertyNames"),
		min:              k.count("minProperties", -1),
		max:              k.count("maxProperties", -1),
		dependentSchemas: k.schemaMap("dependentSchemas"),
		unevaluated:      k.schema("unevaluatedProperties"),
	}
	rules.names = sortedKeys(rules.properties)
	for _, name := range rules.names {
		if rules.properties[name].hasFallback {
			rules.fallbacks = append(rules.fallbacks, name)
		}
	}
	if rules.unevaluated != nil {
		k.c.tracks = true
	}
	patterns := k.schemaMap("patternProperties")
	for _, text := range sortedKeys(patterns) {
		rules.patterns = append(rules.patterns, patternRule{pattern: k.pattern("patternProperties", text), rule: patterns[text]})
	}
	if raw, ok := k.raw["required"]; ok {
		rules.required = k.names("required", raw)
	}
	k.dependencies(rules)
	return rules
}

// dependencies reads dependentRequired, and draft 7's dependencies, which combine it with
// dependentSchemas.
func (k *keywords) dependencies(rules *objectRules) {
	rules.dependent = map[string][]string{}
	for name, raw := range k.mapping("dependentRequired") {
		rules.dependent[name] = k.names("dependentRequired", raw)
	}
	mixed := k.mapping("dependencies")
	for _, name := range sortedKeys(mixed) {
		if _, isList := mixed[name].([]any); isList {
			rules.dependent[name] = k.names("dependencies", mixed[name])
			continue
		}
		if rules.dependentSchemas == nil {
			rules.dependentSchemas = map[string]*node{}
		}
		rules.dependentSchemas[name] = k.sub(mixed[name], "dependencies", name)
	}
	rules.dependentNames = sortedKeys(rules.dependent)
}

func (r *run) checkObject(rules *objectRules, v map[string]any, at *place, own *evaluated) {
	for _, name := range rules.required {
		if _, ok := v[name]; !ok {
			p := Problem{Path: at.String(), Message: fmt.Sprintf("%q is required", name), Kind: MissingMember, Member: name}
			if rule := rules.properties[name]; rule != nil && rule.example != "" {
				p.Hint = fmt.Sprintf("write %s: %q", name, rule.example)
			}
			r.report(p)
		}
	}
	if len(v) < rules.min {
		r.problem(at, "must have at least %s, has %d", count(rules.min, "member"), len(v))
	} else if rules.max >= 0 && len(v) > rules.max {
		r.problem(at, "must have at most %s, has %d", count(rules.max, "member"), len(v))
	}
	for _, name := range sortedKeys(v) {
		r.checkMember(rules, name, v[name], at, own)
	}
	for _, name := range rules.dependentNames {
		if _, ok := v[name]; !ok {
			continue
		}
		for _, needed := range rules.dependent[name] {
			if _, ok := v[needed]; !ok {
				r.problem(at, "%q is required where %q is given", needed, name)
			}
		}
	}
	for _, name := range sortedKeys(rules.dependentSchemas) {
		if _, ok := v[name]; ok {
			r.validate(rules.dependentSchemas[name], v, at, own)
		}
	}
}

// checkMember checks one member of an object by the rules for its name.
func (r *run) checkMember(rules *objectRules, name string, v any, at *place, own *evaluated) {
	here := at.member(name)
	if rules.nameRule != nil {
		for _, p := range r.try(rules.nameRule, name, nil, nil) {
			r.problem(here, "its name %s", p.Message)
		}
	}
	known := false
	if rule := rules.properties[name]; rule != nil {
		known = true
		r.validate(rule, v, here, nil)
	}
	for _, p := range rules.patterns {
		if p.pattern.MatchString(name) {
			known = true
			r.validate(p.rule, v, here, nil)
		}
	}
	switch {
	case known:
	case rules.additional == nil:
		return
	case rules.additional.never:
		hint := diag.Suggest(name, rules.names)
		message := withHint("unknown member "+quote(name), hint)
		r.report(Problem{Path: here.String(), Message: message, Kind: UnknownMember, Member: name, Hint: hint})
	default:
		r.validate(rules.additional, v, here, nil)
	}
	own.member(name)
}

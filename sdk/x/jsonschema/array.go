package jsonschema

import "github.com/the-edge-agent/tea/sdk/value"

// arrayRules are the keywords for arrays.
type arrayRules struct {
	prefix                   []*node
	rest                     *node
	contains                 *node
	minContains, maxContains int // maxContains is -1 if absent
	min, max                 int // -1 if absent
	unique                   bool
	unevaluated              *node
}

// arrays reads the keywords of both drafts: in draft 7, a list under items corresponds to
// prefixItems, and additionalItems then to items.
func (k *keywords) arrays() *arrayRules {
	if !k.has("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems") {
		return nil
	}
	rules := &arrayRules{
		contains:    k.schema("contains"),
		minContains: k.count("minContains", 1),
		maxContains: k.count("maxContains", -1),
		min:         k.count("minItems", -1),
		max:         k.count("maxItems", -1),
		unevaluated: k.schema("unevaluatedItems"),
	}
	if rules.unevaluated != nil {
		k.c.tracks = true
	}
	if list, isList := k.raw["items"].([]any); isList {
		if len(list) > 0 {
			rules.prefix = k.schemas("items")
		}
		rules.rest = k.schema("additionalItems")
	} else {
		rules.prefix = k.schemas("prefixItems")
		rules.rest = k.schema("items")
	}
	if raw, ok := k.raw["uniqueItems"]; ok {
		if rules.unique, ok = raw.(bool); !ok {
			k.fail("uniqueItems", "expected a boolean, got %s", describe(raw))
		}
	}
	return rules
}

func (r *run) checkArray(rules *arrayRules, v []any, at *place, own *evaluated) {
	if len(v) < rules.min {
		r.problem(at, "must have at least %s, has %d", count(rules.min, "item"), len(v))
	} else if rules.max >= 0 && len(v) > rules.max {
		r.problem(at, "must have at most %s, has %d", count(rules.max, "item"), len(v))
	}
	for i, item := range v {
		switch {
		case i < len(rules.prefix):
			r.validate(rules.prefix[i], item, at.item(i), nil)
		case rules.rest != nil:
			r.validate(rules.rest, item, at.item(i), nil)
		}
	}
	if own != nil {
		own.items = max(own.items, len(rules.prefix))
		own.allItems = own.allItems || rules.rest != nil
	}
	if rules.contains != nil {
		r.checkContains(rules, v, at, own)
	}
	if rules.unique {
		r.checkUnique(v, at)
	}
}

func (r *run) checkContains(rules *arrayRules, v []any, at *place, own *evaluated) {
	fitting, open := 0, 0
	for i, item := range v {
		if r.containsTemplate(item, at.item(i)) {
			open++
			continue
		}
		if len(r.try(rules.contains, item, at.item(i), nil)) == 0 {
			fitting++
			own.oneItem(i)
		}
	}
	if fitting+open < rules.minContains {
		r.problem(at, "must contain at least %s of the wanted kind, has %d", count(rules.minContains, "item"), fitting)
	}
	if rules.maxContains >= 0 && fitting > rules.maxContains {
		r.problem(at, "must contain at most %s of that kind, has %d", count(rules.maxContains, "item"), fitting)
	}
}

func (r *run) checkUnique(v []any, at *place) {
	r.steps -= value.Size(v)
	first := make(map[string]int, len(v))
	for i, item := range v {
		if r.containsTemplate(item, at.item(i)) {
			continue
		}
		k := value.Key(item)
		if j, again := first[k]; again {
			r.problem(at.item(i), "is the same as item %d; items must be unique", j)
			continue
		}
		first[k] = i
	}
}

package jsonschema

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// fill reads every group of keywords that occurs. Definitions are checked even if nothing
// refers to them.
func (k *keywords) fill(n *node) {
	k.schemaMap("$defs")
	k.schemaMap("definitions")
	n.fallback, n.hasFallback = k.raw["default"]
	if examples, _ := k.raw["examples"].([]any); len(examples) > 0 {
		n.example, _ = examples[0].(string)
	}
	n.types = k.types()
	n.enum = k.enum()
	n.number = k.numbers()
	n.text = k.texts()
	n.object = k.objects()
	n.array = k.arrays()
	n.logic = k.logics()
}

func (k *keywords) types() []string {
	raw, ok := k.raw["type"]
	if !ok {
		return nil
	}
	var types []string
	if one, ok := raw.(string); ok {
		types = []string{one}
	} else {
		types = k.names("type", raw)
	}
	known := []string{"null", "boolean", "integer", "number", "string", "array", "object"}
	for _, t := range types {
		if !slices.Contains(known, t) {
			k.fail("type", "%s", withHint(fmt.Sprintf("unknown type %q", t), diag.Suggest(t, known)))
		}
	}
	if len(types) == 0 {
		k.fail("type", "expected at least one type")
	}
	return types
}

func typeFits(want string, v any) bool {
	switch want {
	case "integer":
		return value.IsInteger(v)
	case "number":
		return value.IsNumber(v)
	default:
		return want == typeOf(v)
	}
}

func (r *run) checkType(types []string, v any, at *place) {
	for _, t := range types {
		if typeFits(t, v) {
			return
		}
	}
	r.wrongType(at, v, types)
}

// enumRule is enum and const.
type enumRule struct {
	allowed []any
	keys    map[string]bool
	strings []string
}

func (k *keywords) enum() *enumRule {
	var allowed []any
	raw, hasEnum := k.raw["enum"]
	constant, hasConst := k.raw["const"]
	switch {
	case hasConst:
		allowed = []any{constant}
	case hasEnum:
		list, ok := raw.([]any)
		if !ok {
			k.fail("enum", "expected a list, got %s", describe(raw))
		}
		allowed = list
	default:
		return nil
	}
	rule := &enumRule{allowed: allowed, keys: map[string]bool{}}
	for _, v := range allowed {
		if hasConst && hasEnum && !containsEqual(raw, v) {
			continue // both are given and must hold
		}
		rule.keys[value.Key(v)] = true
		if s, ok := v.(string); ok {
			rule.strings = append(rule.strings, s)
		}
	}
	return rule
}

func containsEqual(list, v any) bool {
	items, _ := list.([]any)
	return slices.ContainsFunc(items, func(e any) bool { return value.Equal(e, v) })
}

func (r *run) checkEnum(rule *enumRule, v any, at *place) {
	r.steps -= value.Size(v)
	if rule.keys[value.Key(v)] || r.containsTemplate(v, at) {
		return
	}
	if len(rule.allowed) == 1 {
		r.mismatch(at, quote(v), "must be %s", quote(rule.allowed[0]))
		return
	}
	const shown = 20
	texts := make([]string, 0, shown)
	for i, e := range rule.allowed {
		if i == shown {
			texts = append(texts, fmt.Sprintf("... (%d in all)", len(rule.allowed)))
			break
		}
		texts = append(texts, quote(e))
	}
	hint := ""
	if s, ok := v.(string); ok {
		hint = diag.Suggest(s, rule.strings)
	}
	wanted := "must be one of " + strings.Join(texts, ", ")
	r.report(Problem{Path: at.String(), Message: withHint(wanted+"; got "+quote(v), hint), Wanted: wanted, Hint: hint})
}

// numberRules are the keywords for numbers.
type numberRules struct {
	atMost     string // the member of the same object whose value is the maximum
	bounds     []bound
	multipleOf *big.Rat
	multiple   any
}

type bound struct {
	limit  *big.Rat
	given  any
	fits   func(comparison int) bool
	phrase string
}

func (k *keywords) numbers() *numberRules {
	if !k.has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", keywordAtMost) {
		return nil
	}
	rules := &numberRules{atMost: k.text(keywordAtMost)}
	for _, b := range []struct {
		keyword, phrase string
		fits            func(int) bool
	}{
		{"minimum", "at least", func(c int) bool { return c >= 0 }},
		{"exclusiveMinimum", "more than", func(c int) bool { return c > 0 }},
		{"maximum", "at most", func(c int) bool { return c <= 0 }},
		{"exclusiveMaximum", "less than", func(c int) bool { return c < 0 }},
	} {
		given, ok := k.raw[b.keyword]
		if !ok {
			continue
		}
		limit, ok := value.Decimal(given)
		if !ok {
			k.fail(b.keyword, "expected a number, got %s", describe(given))
		}
		rules.bounds = append(rules.bounds, bound{limit: limit, given: given, fits: b.fits, phrase: b.phrase})
	}
	if given, ok := k.raw["multipleOf"]; ok {
		rules.multiple = given
		if rules.multipleOf, ok = value.Decimal(given); !ok || rules.multipleOf.Sign() <= 0 {
			k.fail("multipleOf", "expected a number above 0, got %s", describe(given))
		}
	}
	return rules
}

func (r *run) checkNumber(rules *numberRules, v any, at *place) {
	number, ok := value.Decimal(v)
	if !ok {
		return
	}
	for _, b := range rules.bounds {
		if !b.fits(number.Cmp(b.limit)) {
			r.mismatch(at, value.FormatNumber(v), "must be %s %s", b.phrase, value.FormatNumber(b.given))
		}
	}
	if rules.atMost != "" {
		limit, _ := r.beside(at, rules.atMost)
		if most, ok := value.Decimal(limit); ok && number.Cmp(most) > 0 {
			r.mismatch(at, value.FormatNumber(v), "must be at most %s, which is %s", rules.atMost, value.FormatNumber(limit))
		}
	}
	if rules.multipleOf != nil && !new(big.Rat).Quo(number, rules.multipleOf).IsInt() {
		r.mismatch(at, value.FormatNumber(v), "must be a multiple of %s", value.FormatNumber(rules.multiple))
	}
}

// textRules are the keywords for strings.
type textRules struct {
	minLength, maxLength int // -1 if absent
	pattern              *regexp.Regexp
	about                string // the description, which explains the pattern
	format               string
	keys                 *keyRule
}

func (k *keywords) texts() *textRules {
	if !k.has("minLength", "maxLength", "pattern", "format", keywordKeyOf) {
		return nil
	}
	rules := &textRules{minLength: k.count("minLength", -1), maxLength: k.count("maxLength", -1), format: k.text("format"), keys: k.keys()}
	if k.has("pattern") {
		rules.pattern = k.pattern("pattern", k.text("pattern"))
		if about, _ := k.raw["description"].(string); about != "" && len(about) < 200 {
			rules.about = " (" + about + ")"
		}
	}
	return rules
}

func (k *keywords) pattern(keyword, text string) *regexp.Regexp {
	re, err := regexp.Compile(text)
	if err != nil {
		k.fail(keyword, "the pattern %q is not valid: %v", text, err)
	}
	return re
}

func (r *run) checkText(rules *textRules, s string, at *place) {
	if length := utf8.RuneCountInString(s); length < rules.minLength {
		r.problem(at, "must have at least %s, has %d", count(rules.minLength, "character"), length)
	} else if rules.maxLength >= 0 && length > rules.maxLength {
		r.problem(at, "must have at most %s, has %d", count(rules.maxLength, "character"), length)
	}
	if rules.pattern != nil && !rules.pattern.MatchString(s) {
		r.mismatch(at, quote(s), "must match the pattern %s%s", rules.pattern, rules.about)
	}
	if rules.keys != nil {
		r.checkKeys(rules.keys, s, at)
	}
	if what := formatFault(rules.format, s); what != "" {
		r.mismatch(at, quote(s), "must be %s", what)
	}
}

package expr

import (
	"context"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/value"
)

func listFilters() map[string]filter {
	return map[string]filter{
		"batch":   {params: params("linecount", "fill_with"), required: 1, apply: batchFilter},
		"default": {params: params("default_value", "boolean"), apply: defaultFilter},
		"dictsort": {
			params: params("case_sensitive", "by", "reverse"),
			apply:  dictsortFilter,
		},
		"first":   {apply: func(a *args) any { return element(a.elements(), 0) }},
		"groupby": {params: params("attribute", "default", "case_sensitive"), required: 1, apply: groupbyFilter},
		"items":   {apply: itemsFilter},
		"join":    {params: params("d", "attribute"), apply: joinFilter},
		"last":    {apply: func(a *args) any { return element(a.elements(), -1) }},
		"length":  {apply: func(a *args) any { return length(a.in) }},
		"list":    {apply: func(a *args) any { return a.elements() }},
		"max":     {params: params("case_sensitive", "attribute"), apply: func(a *args) any { return extreme(a, 1) }},
		"min":     {params: params("case_sensitive", "attribute"), apply: func(a *args) any { return extreme(a, -1) }},
		"random":  {apply: randomFilter},
		"reverse": {apply: reverseFilter},
		"slice":   {params: params("slices", "fill_with"), required: 1, apply: sliceFilter},
		"sort":    {params: params("reverse", "case_sensitive", "attribute"), apply: sortFilter},
		"sum":     {params: params("attribute", "start"), apply: sumFilter},
		"unique":  {params: params("case_sensitive", "attribute"), apply: uniqueFilter},
	}
}

// defaultFilter replaces null, and with boolean=true every value that counts as
// false.
func defaultFilter(a *args) any {
	if isNull(a.in) || a.bool(1, false) && !truthy(a.in) {
		return a.any(0, "")
	}
	return a.in
}

// randomKey is the key of a context for the source of random numbers.
type randomKey struct{}

// WithRandom returns a context in which the filter random draws its numbers, in
// [0, 1), from a function.
func WithRandom(ctx context.Context, draw func() float64) context.Context {
	return context.WithValue(ctx, randomKey{}, draw)
}

func randomFilter(a *args) any {
	list := a.elements()
	if len(list) == 0 {
		return undefined
	}
	if draw, ok := a.run.ctx.Value(randomKey{}).(func() float64); ok {
		return list[int(draw()*float64(len(list)))]
	}
	return list[rand.IntN(len(list))]
}

// attributeOf returns a dotted attribute ("a.b.0") or an index of a value.
func attributeOf(v, attribute any) any {
	name, ok := attribute.(string)
	if !ok {
		return at(v, attribute)
	}
	for part := range strings.SplitSeq(name, ".") {
		if i, err := strconv.Atoi(part); err == nil {
			if _, isObject := v.(map[string]any); !isObject {
				v = element(v, i)
				continue
			}
		}
		v = field(v, part)
	}
	return v
}

// sortKey returns the sort key of an element: its attribute, in lower case
// unless the case counts.
func sortKey(v, attribute any, caseSensitive bool) any {
	if attribute != nil {
		v = attributeOf(v, attribute)
	}
	if s, ok := v.(string); ok && !caseSensitive {
		return strings.ToLower(s)
	}
	return v
}

// sorted returns the list sorted by the keys; equal ones keep their order.
func (a *args) sorted(list []any, reverse bool, keyOf func(v any) []any) []any {
	type keyed struct {
		key   []any
		value any
	}
	work := make([]keyed, len(list))
	for i, v := range list {
		work[i] = keyed{keyOf(v), v}
	}
	sort.SliceStable(work, func(i, j int) bool {
		a.run.tick()
		o, ok := order(work[i].key, work[j].key)
		if !ok {
			panic(failf("%s: elements of different types have no order", a.what))
		}
		if reverse {
			return o > 0
		}
		return o < 0
	})
	out := make([]any, len(work))
	for i, k := range work {
		out[i] = k.value
	}
	return out
}

func sortFilter(a *args) any {
	caseSensitive := a.bool(1, false)
	attributes := []any{nil}
	if attribute := known(a.any(2, nil)); attribute != nil {
		attributes = []any{attribute}
		if s, ok := attribute.(string); ok {
			attributes = attributes[:0]
			for part := range strings.SplitSeq(s, ",") {
				attributes = append(attributes, part)
			}
		}
	}
	return a.sorted(a.elements(), a.bool(0, false), func(v any) []any {
		key := make([]any, len(attributes))
		for i, attribute := range attributes {
			key[i] = sortKey(v, attribute, caseSensitive)
		}
		return key
	})
}

func dictsortFilter(a *args) any {
	entries := pairs(a.in)
	by := 0
	switch a.str(1, "key") {
	case "key":
	case "value":
		by = 1
	default:
		panic(failf(`dictsort needs by="key" or by="value"`))
	}
	list := make([]any, len(entries))
	for i, e := range entries {
		list[i] = []any{e.key, e.value}
	}
	caseSensitive := a.bool(0, false)
	return a.sorted(list, a.bool(2, false), func(v any) []any {
		return []any{sortKey(element(v, by), nil, caseSensitive)}
	})
}

func groupbyFilter(a *args) any {
	attribute, fallback, caseSensitive := a.any(0, nil), a.any(1, undefined), a.bool(2, false)
	get := func(v any) any {
		if found := attributeOf(v, attribute); found != undefined {
			return found
		}
		return fallback
	}
	list := a.sorted(a.elements(), false, func(v any) []any {
		return []any{sortKey(get(v), nil, caseSensitive)}
	})
	out := []any{}
	var last *pair
	for _, v := range list {
		if last == nil || !equal(sortKey(get(v), nil, caseSensitive), sortKey(last.grouper, nil, caseSensitive)) {
			last = &pair{grouper: get(v)}
			out = append(out, last)
		}
		last.elements = append(last.elements, v)
	}
	return out
}

func uniqueFilter(a *args) any {
	caseSensitive, attribute := a.bool(0, false), known(a.any(1, nil))
	seen := map[string]bool{}
	out := []any{}
	for _, v := range a.elements() {
		a.run.tick()
		key := value.Key(plainValue(sortKey(v, attribute, caseSensitive)))
		if !seen[key] {
			seen[key] = true
			out = append(out, v)
		}
	}
	return out
}

// extreme returns the largest (sign 1) or smallest (-1) element.
func extreme(a *args, sign int) any {
	caseSensitive, attribute := a.bool(0, false), known(a.any(1, nil))
	best := undefined
	for i, v := range a.elements() {
		if i == 0 {
			best = v
			continue
		}
		x, y := sortKey(v, attribute, caseSensitive), sortKey(best, attribute, caseSensitive)
		o, ok := order(x, y)
		if !ok {
			panic(failf("%s: cannot compare %s with %s", a.what, typeName(x), typeName(y)))
		}
		if o*sign > 0 {
			best = v
		}
	}
	return best
}

func sumFilter(a *args) any {
	attribute, total := known(a.any(0, nil)), a.any(1, int64(0))
	for _, v := range a.elements() {
		if attribute != nil {
			v = attributeOf(v, attribute)
		}
		total = operate("+", total, v)
	}
	return total
}

func joinFilter(a *args) any {
	separator, attribute := a.str(0, ""), known(a.any(1, nil))
	var out []byte
	for i, v := range a.elements() {
		if i > 0 {
			out = append(out, separator...)
		}
		if attribute != nil {
			v = attributeOf(v, attribute)
		}
		out = appendText(out, v)
	}
	return string(out)
}

func length(v any) any {
	switch v := plainValue(v).(type) {
	case nil:
		return int64(0)
	case string:
		return int64(utf8.RuneCountInString(v))
	case []any:
		return int64(len(v))
	case map[string]any:
		return int64(len(v))
	}
	panic(failf("%s has no length", typeName(v)))
}

func reverseFilter(a *args) any {
	backwards := -1
	if isNull(a.in) {
		return []any{}
	}
	if _, ok := a.in.(string); ok {
		return slice(a.in, nil, nil, &backwards)
	}
	return slice(a.elements(), nil, nil, &backwards)
}

func itemsFilter(a *args) any {
	entries := pairs(a.in)
	out := make([]any, len(entries))
	for i, e := range entries {
		out[i] = []any{e.key, e.value}
	}
	return out
}

// batchFilter splits a list into rows of linecount elements.
func batchFilter(a *args) any {
	size, fill := a.int(0, 1), known(a.any(1, nil))
	if size < 1 || size > maxElements {
		panic(failf("batch needs rows of 1 to %d elements", maxElements))
	}
	out := []any{}
	for row := range slices.Chunk(a.elements(), size) {
		row = slices.Clone(row)
		for fill != nil && len(row) < size {
			row = append(row, fill)
		}
		out = append(out, row)
	}
	return out
}

// sliceFilter distributes a list over a number of columns.
func sliceFilter(a *args) any {
	columns, fill := a.int(0, 1), known(a.any(1, nil))
	if columns < 1 || columns > maxElements {
		panic(failf("slice needs 1 to %d columns", maxElements))
	}
	list := a.elements()
	base, extra := len(list)/columns, len(list)%columns
	out := make([]any, 0, columns)
	for i := range columns {
		n := base
		if i < extra {
			n++
		}
		column := slices.Clone(list[:n:n])
		list = list[n:]
		if fill != nil && extra > 0 && i >= extra {
			column = append(column, fill)
		}
		if column == nil {
			column = []any{}
		}
		out = append(out, column)
	}
	return out
}

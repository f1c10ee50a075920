package jmespath

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
)

func contains(r *run, args []any) any {
	list, ok := args[0].([]any)
	if !ok {
		part, isText := args[1].(string)
		return isText && strings.Contains(args[0].(string), part)
	}
	return slices.ContainsFunc(list, func(e any) bool { return r.equal(e, args[1]) })
}

func length(_ *run, args []any) any {
	switch v := args[0].(type) {
	case string:
		return int64(len([]rune(v)))
	case []any:
		return int64(len(v))
	case map[string]any:
		return int64(len(v))
	}
	return nil
}

func keys(_ *run, args []any) any {
	names := []any{}
	for _, k := range slices.Sorted(maps.Keys(args[0].(map[string]any))) {
		names = append(names, k)
	}
	return names
}

func items(_ *run, args []any) any {
	object := args[0].(map[string]any)
	pairs := []any{}
	for _, k := range slices.Sorted(maps.Keys(object)) {
		pairs = append(pairs, []any{k, object[k]})
	}
	return pairs
}

func fromItems(_ *run, args []any) any {
	object := map[string]any{}
	for i, e := range args[0].([]any) {
		pair := e.([]any)
		if len(pair) != 2 {
			panic(failf("element %d is not a pair", i))
		}
		name, ok := pair[0].(string)
		if !ok {
			panic(failf("element %d does not begin with a string", i))
		}
		object[name] = pair[1]
	}
	return object
}

func merge(_ *run, args []any) any {
	merged := map[string]any{}
	for _, a := range args {
		maps.Copy(merged, a.(map[string]any))
	}
	return merged
}

func notNull(_ *run, args []any) any {
	for _, a := range args {
		if a != nil {
			return a
		}
	}
	return nil
}

func reverse(_ *run, args []any) any {
	if s, ok := args[0].(string); ok {
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes)
	}
	list := slices.Clone(args[0].([]any))
	slices.Reverse(list)
	return list
}

func toArray(_ *run, args []any) any {
	if list, ok := args[0].([]any); ok {
		return list
	}
	return []any{args[0]}
}

func zip(r *run, args []any) any {
	shortest := len(args[0].([]any))
	for _, a := range args {
		shortest = min(shortest, len(a.([]any)))
	}
	r.spend(shortest * len(args))
	zipped := make([]any, shortest)
	for i := range zipped {
		row := make([]any, len(args))
		for j, a := range args {
			row[j] = a.([]any)[i]
		}
		zipped[i] = row
	}
	return zipped
}

func (r *run) applyEach(e expref, list []any) []any {
	out := make([]any, len(list))
	for i, element := range list {
		out[i] = r.apply(e, element)
	}
	return out
}

func groupBy(r *run, args []any) any {
	list := args[0].([]any)
	names := r.applyEach(args[1].(expref), list)
	groups := map[string][]any{}
	for i, element := range list {
		name, ok := names[i].(string)
		if !ok {
			panic(failf("the expression must return a string, got %s for element %d", typeName(names[i]), i))
		}
		groups[name] = append(groups[name], element)
	}
	grouped := make(map[string]any, len(groups))
	for name, group := range groups {
		grouped[name] = group
	}
	return grouped
}

// ranked is an element with its sort key.
type ranked struct{ element, rank any }

// rank returns the elements with the values of an expression, which must all be
// numbers or all be strings.
func (r *run) rank(args []any) []ranked {
	list := args[0].([]any)
	ranks := r.applyEach(args[1].(expref), list)
	if !numbers.fits(ranks) && !texts.fits(ranks) {
		panic(failf("the expression must return a number for every element, or a string for every element"))
	}
	out := make([]ranked, len(list))
	for i := range list {
		out[i] = ranked{element: list[i], rank: ranks[i]}
	}
	return out
}

// order compares two numbers or two strings.
func order(a, b any) int {
	order, _ := value.Order(a, b)
	return order
}

func sortBy(r *run, args []any) any {
	all := r.rank(args)
	sort.SliceStable(all, func(i, j int) bool { return order(all[i].rank, all[j].rank) < 0 })
	out := make([]any, len(all))
	for i := range all {
		out[i] = all[i].element
	}
	return out
}

func sorted(_ *run, args []any) any {
	list := append([]any{}, args[0].([]any)...)
	sort.SliceStable(list, func(i, j int) bool { return order(list[i], list[j]) < 0 })
	return list
}

// best returns the element with the least rank by sign*order, the first if there
// are several; nil if there is none.
func best(all []ranked, sign int) any {
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b ranked) int { return sign * order(a.rank, b.rank) }).element
}

func byItself(v any) []ranked {
	var all []ranked
	for _, e := range v.([]any) {
		all = append(all, ranked{element: e, rank: e})
	}
	return all
}

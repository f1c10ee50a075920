package jmespath

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/sdk/value"
)

func contains(r *run, args []any) (any, error) {
	list, ok := args[0].([]any)
	if !ok {
		return containsText(args[0].(string), args[1]), nil
	}
	for _, e := range list {
		if same, err := r.equal(e, args[1]); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

func length(_ *run, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return int64(len([]rune(v))), nil
	case []any:
		return int64(len(v)), nil
	case map[string]any:
		return int64(len(v)), nil
	}
	return nil, nil
}

func keys(_ *run, args []any) (any, error) {
	names := []any{}
	for _, k := range slices.Sorted(maps.Keys(args[0].(map[string]any))) {
		names = append(names, k)
	}
	return names, nil
}

func values(_ *run, args []any) (any, error) { return valuesOf(args[0].(map[string]any)), nil }

func items(_ *run, args []any) (any, error) {
	object := args[0].(map[string]any)
	pairs := []any{}
	for _, k := range slices.Sorted(maps.Keys(object)) {
		pairs = append(pairs, []any{k, object[k]})
	}
	return pairs, nil
}

func fromItems(_ *run, args []any) (any, error) {
	object := map[string]any{}
	for i, e := range args[0].([]any) {
		pair := e.([]any)
		if len(pair) != 2 {
			return nil, fmt.Errorf("element %d is not a pair", i)
		}
		name, ok := pair[0].(string)
		if !ok {
			return nil, fmt.Errorf("element %d does not begin with a string", i)
		}
		object[name] = pair[1]
	}
	return object, nil
}

func merge(_ *run, args []any) (any, error) {
	merged := map[string]any{}
	for _, a := range args {
		maps.Copy(merged, a.(map[string]any))
	}
	return merged, nil
}

func notNull(_ *run, args []any) (any, error) {
	for _, a := range args {
		if a != nil {
			return a, nil
		}
	}
	return nil, nil
}

func reverse(_ *run, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes), nil
	}
	list := slices.Clone(args[0].([]any))
	slices.Reverse(list)
	return list, nil
}

func toArray(_ *run, args []any) (any, error) {
	if list, ok := args[0].([]any); ok {
		return list, nil
	}
	return []any{args[0]}, nil
}

func zip(r *run, args []any) (any, error) {
	shortest := len(args[0].([]any))
	for _, a := range args {
		shortest = min(shortest, len(a.([]any)))
	}
	if err := r.spend(shortest * len(args)); err != nil {
		return nil, err
	}
	zipped := make([]any, shortest)
	for i := range zipped {
		row := make([]any, len(args))
		for j, a := range args {
			row[j] = a.([]any)[i]
		}
		zipped[i] = row
	}
	return zipped, nil
}

func mapping(r *run, args []any) (any, error) {
	return r.applyEach(args[0].(expref), args[1].([]any))
}

func (r *run) applyEach(e expref, list []any) ([]any, error) {
	out := make([]any, len(list))
	for i, element := range list {
		var err error
		if out[i], err = r.apply(e, element); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func groupBy(r *run, args []any) (any, error) {
	list := args[0].([]any)
	names, err := r.applyEach(args[1].(expref), list)
	if err != nil {
		return nil, err
	}
	groups := map[string][]any{}
	for i, element := range list {
		name, ok := names[i].(string)
		if !ok {
			return nil, fmt.Errorf("the expression must return a string, got %s for element %d", typeName(names[i]), i)
		}
		groups[name] = append(groups[name], element)
	}
	grouped := make(map[string]any, len(groups))
	for name, group := range groups {
		grouped[name] = group
	}
	return grouped, nil
}

// ranked is an element with its sort key.
type ranked struct{ element, rank any }

// rank returns the elements with the values of an expression, which must all be
// numbers or all be strings.
func (r *run) rank(args []any) ([]ranked, error) {
	list := args[0].([]any)
	ranks, err := r.applyEach(args[1].(expref), list)
	if err != nil {
		return nil, err
	}
	if !numbers.fits(ranks) && !texts.fits(ranks) {
		return nil, fmt.Errorf("the expression must return a number for every element, or a string for every element")
	}
	out := make([]ranked, len(list))
	for i := range list {
		out[i] = ranked{element: list[i], rank: ranks[i]}
	}
	return out, nil
}

// order compares two numbers or two strings.
func order(a, b any) int {
	if s, ok := a.(string); ok {
		return cmp.Compare(s, b.(string))
	}
	order, _ := value.Compare(a, b)
	return order
}

func sortBy(r *run, args []any) (any, error) {
	all, err := r.rank(args)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return order(a.rank, b.rank) })
	out := make([]any, len(all))
	for i := range all {
		out[i] = all[i].element
	}
	return out, nil
}

func sorted(_ *run, args []any) (any, error) {
	list := append([]any{}, args[0].([]any)...)
	slices.SortStableFunc(list, order)
	return list, nil
}

// best returns the element with the least rank by sign*order, the first of
// several; nil if there is none.
func best(all []ranked, sign int) any {
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b ranked) int { return sign * order(a.rank, b.rank) }).element
}

func maxBy(r *run, args []any) (any, error) {
	all, err := r.rank(args)
	return best(all, -1), err
}

func minBy(r *run, args []any) (any, error) {
	all, err := r.rank(args)
	return best(all, 1), err
}

func byItself(v any) []ranked {
	var all []ranked
	for _, e := range v.([]any) {
		all = append(all, ranked{element: e, rank: e})
	}
	return all
}

func maximum(_ *run, args []any) (any, error) { return best(byItself(args[0]), -1), nil }

func minimum(_ *run, args []any) (any, error) { return best(byItself(args[0]), 1), nil }

package expr

import (
	"math"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// filter is a filter, a test, a function or a method with its parameters. A
// variadic one takes any arguments.
type filter struct {
	params   []string
	required int
	variadic bool
	apply    func(a *args) any
}

// table is a set of filters by name that is built when it is first needed.
type table struct {
	once    sync.Once
	entries map[string]filter
}

func (t *table) get(build func() map[string]filter) map[string]filter {
	t.once.Do(func() { t.entries = build() })
	return t.entries
}

// The tables are immutable once built.
var (
	filterTable, testTable, functionTable                 table
	stringMethodTable, listMethodTable, objectMethodTable table
)

func filters() map[string]filter       { return filterTable.get(buildFilters) }
func tests() map[string]filter         { return testTable.get(buildTests) }
func functions() map[string]filter     { return functionTable.get(buildFunctions) }
func stringMethods() map[string]filter { return stringMethodTable.get(buildStringMethods) }
func listMethods() map[string]filter   { return listMethodTable.get(buildListMethods) }
func objectMethods() map[string]filter { return objectMethodTable.get(buildObjectMethods) }

// buildFilters returns the table of Jinja's filters and tea's own, by name.
func buildFilters() map[string]filter {
	table := map[string]filter{}
	for _, part := range []map[string]filter{
		textFilters(), markupFilters(), numberFilters(),
		listFilters(), selectionFilters(), codecFilters(),
	} {
		for name, f := range part {
			table[name] = f
		}
	}
	table["d"] = table["default"]
	table["e"] = table["escape"]
	table["count"] = table["length"]
	table["json"] = table["tojson"]
	return table
}

func params(names ...string) []string { return names }

func (f filter) index(param string) int { return slices.Index(f.params, param) }

// args are the arguments of one call, matched to the parameters. Its methods
// fail for a wrong type.
type args struct {
	run    *run
	what   string
	filter filter
	in     any
	list   []any // by parameter; an absent one has the type missing
	values values
}

type missing struct{}

// call matches the arguments to the parameters and calls the filter.
func (r *run) call(f filter, what string, in any, v values) any {
	r.alive()
	a := &args{run: r, what: what, filter: f, in: in, values: v}
	if !f.variadic {
		a.match()
	}
	return f.apply(a)
}

func (a *args) match() {
	f := a.filter
	if len(a.values.positional) > len(f.params) {
		panic(failf("%s takes at most %d argument(s), found %d", a.what, len(f.params), len(a.values.positional)))
	}
	if len(f.params) == 0 && len(a.values.named) == 0 {
		return
	}
	a.list = make([]any, len(f.params))
	for i := range a.list {
		a.list[i] = missing{}
	}
	copy(a.list, a.values.positional)
	for name, v := range a.values.named {
		i := f.index(name)
		if i < 0 {
			panic(failf("%s has no argument %q", a.what, name).hinted(diag.Suggest(name, f.params)))
		}
		a.list[i] = v
	}
	for i := range f.required {
		if !a.has(i) {
			panic(failf("%s needs its argument %q", a.what, f.params[i]))
		}
	}
}

func (a *args) has(i int) bool {
	if i >= len(a.list) {
		return false
	}
	_, absent := a.list[i].(missing)
	return !absent
}

func (a *args) any(i int, fallback any) any {
	if !a.has(i) {
		return fallback
	}
	return a.list[i]
}

func (a *args) str(i int, fallback string) string {
	if !a.has(i) || isNull(a.list[i]) {
		return fallback
	}
	return textOf(a.list[i])
}

func (a *args) bool(i int, fallback bool) bool { return truthy(a.any(i, fallback)) }

func (a *args) int(i, fallback int) int {
	if !a.has(i) || isNull(a.list[i]) {
		return fallback
	}
	switch v := a.list[i].(type) {
	case int64:
		return clamp(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return clamp(int64(v))
		}
	}
	panic(failf("%s: its argument %q must be an integer, not %s", a.what, a.filter.params[i], typeName(a.list[i])))
}

// text returns the input as text; null is empty.
func (a *args) text() string { return textOf(a.in) }

// elements returns the input's elements; null has none.
func (a *args) elements() []any {
	list, err := elements(a.in)
	if err != nil {
		panic(failf("%s: %w", a.what, err))
	}
	return list
}

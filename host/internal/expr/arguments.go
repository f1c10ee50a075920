package expr

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// filter is a filter, a test, a function or a method with its parameters. A
// variadic one takes any arguments.
type filter struct {
	params   []string
	required int
	variadic bool
	apply    func(a *args) (any, error)
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

func (f filter) index(param string) int { return slices.Index(f.params, param) }

// args are the arguments of one call, matched to the parameters. For a wrong
// type a method sets err and returns the default, so that an apply function
// needs no check for each argument; call checks err.
type args struct {
	run    *run
	what   string
	filter filter
	in     any
	list   []any // by parameter; an absent one has the type missing
	values values
	err    error
}

type missing struct{}

// call matches the arguments to the parameters and calls the filter.
func (r *run) call(f filter, what string, in any, v values) (any, error) {
	if err := r.alive(); err != nil {
		return nil, err
	}
	a := &args{run: r, what: what, filter: f, in: in, values: v}
	if !f.variadic {
		if err := a.match(); err != nil {
			return nil, err
		}
	}
	result, err := f.apply(a)
	if a.err != nil {
		return nil, a.err
	}
	return result, err
}

func (a *args) match() error {
	f := a.filter
	if len(a.values.positional) > len(f.params) {
		return fmt.Errorf("%s takes at most %d argument(s), found %d", a.what, len(f.params), len(a.values.positional))
	}
	if len(f.params) == 0 && len(a.values.named) == 0 {
		return nil
	}
	a.list = make([]any, len(f.params))
	for i := range a.list {
		a.list[i] = missing{}
	}
	copy(a.list, a.values.positional)
	for name, v := range a.values.named {
		i := f.index(name)
		if i < 0 {
			return &hintedError{fmt.Sprintf("%s has no argument %q", a.what, name), diag.Suggest(name, f.params)}
		}
		a.list[i] = v
	}
	for i := range f.required {
		if !a.has(i) {
			return fmt.Errorf("%s needs its argument %q", a.what, f.params[i])
		}
	}
	return nil
}

func (a *args) has(i int) bool {
	if i >= len(a.list) {
		return false
	}
	_, absent := a.list[i].(missing)
	return !absent
}

// any returns an argument of any type.
func (a *args) any(i int, fallback any) any {
	if !a.has(i) {
		return fallback
	}
	return a.list[i]
}

func (a *args) wrong(i int, want string) {
	if a.err == nil {
		a.err = fmt.Errorf("%s: its argument %q must be %s, not %s", a.what, a.filter.params[i], want, typeName(a.list[i]))
	}
}

func (a *args) str(i int, fallback string) string {
	if !a.has(i) || isNull(a.list[i]) {
		return fallback
	}
	s, err := textOf(a.list[i])
	if err != nil && a.err == nil {
		a.err = err
	}
	return s
}

func (a *args) bool(i int, fallback bool) bool {
	if !a.has(i) {
		return fallback
	}
	return truthy(a.list[i])
}

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
	a.wrong(i, "an integer")
	return fallback
}

// text returns the input as text; null is empty.
func (a *args) text() string {
	s, err := textOf(a.in)
	if err != nil && a.err == nil {
		a.err = err
	}
	return s
}

// elements returns the input's elements; null has none.
func (a *args) elements() []any {
	list, err := elements(a.in)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("%s: %w", a.what, err)
	}
	return list
}

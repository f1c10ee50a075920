package expr

import (
	"maps"
	"math"
)

// buildFunctions returns the table of global functions, by name.
func buildFunctions() map[string]filter {
	return map[string]filter{
		"range":     {params: []string{"start", "stop", "step"}, required: 1, apply: rangeFunction},
		"dict":      {variadic: true, apply: func(a *args) any { return namedValues(a) }},
		"namespace": {variadic: true, apply: func(a *args) any { return &namespace{values: namedValues(a)} }},
		"cycler":    {variadic: true, apply: cyclerFunction},
		"joiner": {params: []string{"sep"}, apply: func(a *args) any {
			return &joiner{separator: a.str(0, ", ")}
		}},
	}
}

func rangeFunction(a *args) any {
	start, stop, step := 0, a.int(0, 0), a.int(2, 1)
	if a.has(1) {
		start, stop = stop, a.int(1, 0)
	}
	if step == 0 {
		panic(failf("the step of range() cannot be 0"))
	}
	count := math.Ceil((float64(stop) - float64(start)) / float64(step))
	if count > maxRange {
		panic(failf("range() has more than %d numbers", maxRange))
	}
	out := make([]any, max(0, int(count)))
	for i := range out {
		out[i] = int64(start + i*step)
	}
	return out
}

// namedValues returns an object of the named arguments, and of an object or a
// list of pairs before them.
func namedValues(a *args) map[string]any {
	out := map[string]any{}
	for _, v := range a.values.positional {
		entries := pairs(v)
		for _, e := range entries {
			out[e.key] = e.value
		}
	}
	maps.Copy(out, a.values.named)
	measure(out)
	return out
}

// entry is one entry of an object.
type entry struct {
	key   string
	value any
}

// pairs returns an object's entries sorted by key, or the entries of a list of
// [key, value].
func pairs(v any) []entry {
	if object, ok := plainValue(v).(map[string]any); ok {
		out := make([]entry, 0, len(object))
		for _, k := range keys(object) {
			out = append(out, entry{k, object[k]})
		}
		return out
	}
	list := must(elements(v))
	out := make([]entry, 0, len(list))
	for _, e := range list {
		kv, ok := plainValue(e).([]any)
		if !ok || len(kv) != 2 {
			panic(failf("%s is neither an object nor a list of [key, value]", typeName(v)))
		}
		out = append(out, entry{keyText(kv[0]), kv[1]})
	}
	return out
}

// namespace is an object whose attributes a template can set.
type namespace struct{ values map[string]any }

func (n *namespace) field(name string) any { return field(n.values, name) }

// cycler returns its values in turn.
type cycler struct {
	items []any
	next  int
}

func cyclerFunction(a *args) any {
	if len(a.values.positional) == 0 {
		panic(failf("cycler() needs values to choose from"))
	}
	return &cycler{items: a.values.positional}
}

func (c *cycler) field(name string) any {
	if name == "current" {
		return c.items[c.next]
	}
	return undefined
}

func (c *cycler) method(name string, _ values) any {
	switch name {
	case "next":
		v := c.items[c.next]
		c.next = (c.next + 1) % len(c.items)
		return v
	case "reset":
		c.next = 0
		return nil
	}
	panic(failf("a cycler has no method %q", name))
}

// joiner is empty at its first call and the separator at all others.
type joiner struct {
	separator string
	used      bool
}

func (j *joiner) call(*run, values) any {
	if j.used {
		return j.separator
	}
	j.used = true
	return ""
}

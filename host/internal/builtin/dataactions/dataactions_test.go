package dataactions_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/actiontest"
	"github.com/the-edge-agent/tea/host/internal/builtin/dataactions"
	tea "github.com/the-edge-agent/tea/sdk"
)

type (
	params = actiontest.Params
	list   = []any
)

func open(t testing.TB) *actiontest.Caller {
	return actiontest.Open(t, dataactions.Bundle("1.0.0"), nil)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	c := open(t)
	schema := params{"type": "object", "properties": params{"items": params{"items": params{"required": list{"name"}, "properties": params{"n": params{"type": "integer"}}}}}}
	got := c.Must("data.validate", params{"schema": schema, "data": params{"items": list{params{"name": "a", "n": 1}, params{"n": "x"}}}})
	want := params{"success": true, "valid": false, "errors": list{
		params{"path": "items[1]", "message": `"name" is required`},
		params{"path": "items[1].n", "message": `expected integer, got string "x"`},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(params{"success": true, "valid": true, "errors": list{}}, c.Must("data.validate", params{"schema": true, "data": nil})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	e := c.Fails(tea.ValidationError, "data.validate", params{"schema": params{"properties": params{"a": params{"type": "txt"}}}, "data": 1})
	if !strings.Contains(e.Message, "properties.a.type") {
		t.Errorf("got %v, want the place in the schema", e)
	}
	e = c.Fails(tea.ValidationError, "data.validate", params{"schema": params{"properties": params{"a": params{"requird": list{"b"}}}}, "data": 1})
	if !strings.Contains(e.Message, `schema at properties.a: the keyword "requird" is not supported`) {
		t.Errorf("got %v, want the misspelled keyword", e)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	c := open(t)
	a := params{"x": params{"p": 1, "q": list{1, 2}}, "keep": true}
	b := params{"x": params{"q": list{3}, "r": nil}, "y": 2}
	for strategy, want := range map[string]params{
		"deep":    {"x": params{"p": int64(1), "q": list{int64(3)}, "r": nil}, "y": int64(2), "keep": true},
		"shallow": {"x": params{"q": list{int64(3)}, "r": nil}, "y": int64(2), "keep": true},
	} {
		got := c.Must("data.merge", params{"sources": list{a, nil, b}, "strategy": strategy})
		if diff := cmp.Diff(params{"success": true, "result": want, "source_count": int64(3)}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", strategy, diff)
		}
	}
	got := c.Must("data.merge", params{"sources": list{params{"x": params{"a": 1}}, params{"x": 5}, params{"x": params{"b": 2}}}})
	if diff := cmp.Diff(params{"x": params{"b": int64(2)}}, got["result"]); diff != "" {
		t.Errorf("an object over a number (-want +got):\n%s", diff)
	}
	if got := c.Must("data.merge", params{"sources": list{}}); len(got["result"].(params)) != 0 {
		t.Errorf("merging nothing gives %v", got)
	}
	c.Fails(tea.ValidationError, "data.merge", params{"sources": list{1}})
	c.Fails(tea.ValidationError, "data.merge", params{"sources": list{}, "strategy": "deeep"})
}

func TestFilter(t *testing.T) {
	t.Parallel()
	c := open(t)
	data := list{
		params{"id": 1, "n": 5, "s": "apple", "tags": list{"a", "b"}, "o": params{"k": list{params{"v": 1}}}},
		params{"id": 2, "n": 7.5, "s": "banana", "tags": list{}, "o": params{"k": list{params{"v": 2}}}},
		params{"id": 3, "n": "7", "s": nil},
		params{"id": 4, "n": 9007199254740993, "s": "avocado", "o": params{"other": true}},
		"text", nil,
		list{1},
	}
	where := func(field, op string, v any) params { return params{"field": field, "op": op, "value": v} }
	for _, test := range []struct {
		predicate any
		want      list
	}{
		{where("n", "eq", 5.0), list{1}},
		{where("n", "gt", 5), list{2, 4}},
		{where("n", "gte", 5), list{1, 2, 4}},
		{where("n", "gt", 9007199254740992), list{4}},
		{where("n", "eq", 9007199254740992.0), list{}},
		{where("n", "lt", 7.5), list{1}},
		{where("n", "lte", 7.5), list{1, 2}},
		{where("n", "lt", "8"), list{3}},
		{where("s", "gt", "apple"), list{2, 4}},
		{where("s", "startswith", "a"), list{1, 4}},
		{where("s", "endswith", "a"), list{2}},
		{where("s", "contains", "an"), list{2}},
		{where("tags", "contains", "b"), list{1}},
		{where("o", "contains", "other"), list{4}},
		{where("s", "in", list{"apple", nil}), list{1, 3}},
		{where("o.k[0].v", "eq", 2), list{2}},
		{where("o.k[-1].v", "exists", true), list{1, 2}},
		{where("tags[1]", "exists", nil), list{1}},
		{list{where("n", "gte", 5), where("s", "ne", "banana")}, list{1, 4}},
		{list{}, list{1, 2, 3, 4, "text", nil, list{1}}},
	} {
		got := c.Must("data.filter", params{"data": data, "predicate": test.predicate})
		ids := list{}
		for _, item := range got["result"].(list) {
			if object, ok := item.(params); ok {
				item = object["id"]
			}
			ids = append(ids, item)
		}
		if diff := cmp.Diff(integers(test.want), ids); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.predicate, diff)
		}
		if got["original_count"] != int64(7) || got["filtered_count"] != int64(len(test.want)) {
			t.Errorf("%v counts %v of %v", test.predicate, got["filtered_count"], got["original_count"])
		}
	}
}

// integers turns the Go numbers of a table into those of the value model.
func integers(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case list:
		out := list{}
		for _, e := range v {
			out = append(out, integers(e))
		}
		return out
	}
	return v
}

func TestFilterMissingFields(t *testing.T) {
	t.Parallel()
	c := open(t)
	data := list{params{}, params{"a": nil}, params{"a": 1}}
	for _, test := range []struct {
		op    string
		value any
		want  int64
	}{
		{"eq", nil, 1}, {"ne", 1, 2}, {"ne", nil, 2}, {"not_in", list{1}, 2}, {"in", list{nil}, 1}, {"exists", true, 2}, {"exists", false, 1}, {"lt", 5, 1}, {"contains", 1, 0},
	} {
		got := c.Must("data.filter", params{"data": data, "predicate": params{"field": "a", "op": test.op, "value": test.value}})
		if got["filtered_count"] != test.want {
			t.Errorf("%s %v keeps %v, want %d", test.op, test.value, got["result"], test.want)
		}
	}
	got := c.Must("data.filter", params{"data": list{3, 1, 2}, "predicate": params{"op": "gte", "value": 2}})
	if diff := cmp.Diff(list{int64(3), int64(2)}, got["result"]); diff != "" {
		t.Errorf("items themselves (-want +got):\n%s", diff)
	}
}

func TestFilterRefusesBadPredicates(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, test := range []struct {
		predicate any
		want      string
	}{
		{params{"field": "a", "op": "equals", "value": 1}, "op must be one of"},
		{params{"field": "a", "op": "startwith", "value": "x"}, `did you mean "startswith"?`},
		{params{"field": "a", "op": "eq"}, "needs a value"},
		{params{"feild": "a", "op": "exists"}, `did you mean "field"?`},
		{list{params{"field": "a", "op": "in", "value": "x"}}, "predicate[0]: operator in takes a list"},
		{params{"field": "a", "op": "startswith", "value": 1}, "takes a string"},
		{params{"field": "a", "op": "exists", "value": "yes"}, "true or false"},
		{params{"field": "a[x]", "op": "exists"}, "number in the brackets"},
		{params{"field": "a..b", "op": "exists"}, "a name is missing"},
		{params{"field": "a.", "op": "exists"}, "a name is missing"},
		{params{"field": "a[0", "op": "exists"}, "number in the brackets"},
		{params{"field": "a[0]b", "op": "exists"}, "after a bracket"},
		{params{"field": 1, "op": "exists"}, "field must be a string"},
		{"a > 1", "expected {field, op, value}"},
	} {
		if e := c.Fails(tea.ValidationError, "data.filter", params{"data": list{}, "predicate": test.predicate}); !strings.Contains(e.Message, test.want) {
			t.Errorf("%v: %v, want %q in it", test.predicate, e, test.want)
		}
	}
}

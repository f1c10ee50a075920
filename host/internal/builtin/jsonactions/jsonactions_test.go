package jsonactions_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/actiontest"
	"github.com/the-edge-agent/tea/host/internal/builtin/jsonactions"
	tea "github.com/the-edge-agent/tea/sdk"
)

type (
	params = actiontest.Params
	list   = []any
)

func open(t testing.TB) *actiontest.Caller {
	return actiontest.Open(t, jsonactions.Bundle("1.0.0"), nil)
}

func TestParse(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, test := range []struct {
		name   string
		params params
		want   any
	}{
		{"object", params{"text": ` {"a":[1,2.5,"x",null,true]} `}, params{"a": list{int64(1), 2.5, "x", nil, true}}},
		{"long integers", params{"text": `[9007199254740993,123456789012345678901234567890]`}, list{int64(9007199254740993), json.Number("123456789012345678901234567890")}},
		{"scalar", params{"text": `"x"`}, "x"},
		{"byte order mark", params{"text": "\ufeff1"}, int64(1)},
		{"default", params{"text": `{`, "default": params{"x": 1}}, params{"x": int64(1)}},
		{"default null", params{"text": `{`, "default": nil}, nil},
		{"default unused", params{"text": `1`, "default": 2}, int64(1)},
		{"comments and commas", params{"strict": false, "text": "// head\n{\"a\": [1, 2,], /* x */ \"b\": \"// no , ] comment\", // tail\n}"}, params{"a": list{int64(1), int64(2)}, "b": "// no , ] comment"}},
		{"fence", params{"strict": false, "text": "Here [it] is:\n```json\n{\"a\": 1,}\n```\nBye {}"}, params{"a": int64(1)}},
		{"in text", params{"strict": false, "text": `He said: "the answer {is} is {"a": {"b": "}"}} and https://x.y"`}, params{"a": params{"b": "}"}}},
		{"plain in lenient", params{"strict": false, "text": `[1]`}, list{int64(1)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(params{"success": true, "data": test.want}, c.Must("json.parse", test.params)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseErrorsHaveAPosition(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, test := range []struct {
		text                 string
		line, column, offset int
	}{
		{`{"a":}`, 1, 6, 5},
		{"{\n  \"ä\": 1,\n}", 3, 1, 13},
		{"[1, 2", 1, 6, 5},
		{"", 1, 1, 0},
		{"  ", 1, 3, 2},
		{`{"a":1} x`, 1, 9, 8},
		{"[1]\n[2]", 2, 1, 4},
		{`{'a':1}`, 1, 2, 1},
		{`[01]`, 1, 3, 2},
		{`[1,]`, 1, 4, 3},
		{`nul`, 1, 4, 3},
		{`{"a" 1}`, 1, 6, 5},
		{"\"a\nb\"", 1, 3, 2},
		{"// c\n1", 1, 1, 0},
		{strings.Repeat("[", 1001), 1, 1001, 1000},
		{"\ufeff[x]", 1, 3, 4},
		{"{\n\"a\": [\"1e999\", 1.5, 1e999]}", 2, 21, 22},
		{"-1e400", 1, 1, 0},
	} {
		e := c.Fails(tea.ValidationError, "json.parse", params{"text": test.text})
		want := map[string]any{"line": test.line, "column": test.column, "offset": test.offset}
		if diff := cmp.Diff(want, e.Details); diff != "" {
			t.Errorf("%.20q: %v (-want +got):\n%s", test.text, e, diff)
		}
	}
	c.Fails(tea.ValidationError, "json.parse", params{"text": "1e999"})
	c.Fails(tea.ValidationError, "json.parse", params{"text": "no json at all [", "strict": false})
	c.Fails(tea.ValidationError, "json.parse", params{})
	c.Fails(tea.ValidationError, "json.parse", params{"txt": "1"})
}

func TestParseRefusesAKeyThatAppearsTwice(t *testing.T) {
	t.Parallel()
	c := open(t)
	text := `{"a": [{"x": ":", "b": 1, "b": 2}]}`
	e := c.Fails(tea.ValidationError, "json.parse", params{"text": text})
	if e.Details["key"] != "a[0].b" || !strings.Contains(e.Message, `the key "a[0].b" appears twice`) {
		t.Errorf("got %v %v", e, e.Details)
	}
	got := c.Must("json.parse", params{"text": text, "strict": false})
	if diff := cmp.Diff(params{"a": list{params{"x": ":", "b": int64(2)}}}, got["data"]); diff != "" {
		t.Errorf("not strict (-want +got):\n%s", diff)
	}
	c.Must("json.parse", params{"text": `{"a": {"b": 1}, "b": {"a": "\":{", "c": [{"b": 2}, {"b": 3}]}}`})
}

func TestParseDeepButAllowed(t *testing.T) {
	t.Parallel()
	open(t).Must("json.parse", params{"text": strings.Repeat("[", 1000) + strings.Repeat("]", 1000)})
}

func TestTransform(t *testing.T) {
	t.Parallel()
	c := open(t)
	data := params{"items": list{params{"name": "a", "price": 90}, params{"name": "b", "price": 120}, params{"name": "c", "price": 9007199254740993}}}
	for expression, want := range map[string]any{
		"items[?price > `100`].name": list{"b", "c"},
		"items[-1].price":            int64(9007199254740993),
		"length(items)":              int64(3),
		"missing":                    nil,
	} {
		got := c.Must("json.transform", params{"data": data, "expression": expression})
		if diff := cmp.Diff(params{"success": true, "result": want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expression, diff)
		}
	}
	e := c.Fails(tea.ValidationError, "json.transform", params{"data": data, "expression": "items[?price >"})
	if e.Details["column"] != 15 || !strings.Contains(e.Message, "items[?price >") {
		t.Errorf("got %v with %v, want column 15", e, e.Details)
	}
	c.Fails(tea.ValidationError, "json.transform", params{"data": data, "expression": "sum(items)"})
	if e := c.Fails(tea.ValidationError, "json.transform", params{"data": data, "expression": strings.Repeat("ä.", 100_000)}); len(e.Message) > 1000 {
		t.Errorf("the message has %d bytes", len(e.Message))
	}
	c.Fails(tea.ValidationError, "json.transform", params{"expression": "a"})
}

func TestStringify(t *testing.T) {
	t.Parallel()
	c := open(t)
	data := params{"b": list{1, 2.5}, "a": "x<y", "c": params{}}
	for _, test := range []struct {
		params params
		want   string
	}{
		{params{"data": data}, `{"a":"x<y","b":[1,2.5],"c":{}}`},
		{params{"data": data, "sort_keys": false}, `{"a":"x<y","b":[1,2.5],"c":{}}`},
		{params{"data": data, "pretty": true}, "{\n  \"a\": \"x<y\",\n  \"b\": [\n    1,\n    2.5\n  ],\n  \"c\": {}\n}"},
		{params{"data": list{1}, "indent": 4}, "[\n    1\n]"},
		{params{"data": list{1}, "pretty": true, "indent": 0}, "[1]"},
		{params{"data": nil}, "null"},
		{params{"data": json.Number("123456789012345678901234567890")}, "123456789012345678901234567890"},
	} {
		if diff := cmp.Diff(params{"success": true, "text": test.want}, c.Must("json.stringify", test.params)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.params, diff)
		}
	}
	c.Fails(tea.ValidationError, "json.stringify", params{"data": 1, "indent": 99})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3]}`, "// x\n[1,]", "```json\n{}\n```", `"\ud800"`, "[1] 2", "/*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := open(t)
		for _, strict := range []bool{true, false} {
			result, err := c.Call(t.Context(), "json.parse", params{"text": text, "strict": strict})
			if err == nil {
				c.Must("json.stringify", params{"data": result["data"]})
				continue
			}
			e := tea.AsError(err)
			if offset, ok := e.Details["offset"].(int); e.Type != tea.ValidationError || ok && offset > len(text)*3 {
				t.Errorf("%q gives %v with %v", text, e, e.Details)
			}
		}
	})
}

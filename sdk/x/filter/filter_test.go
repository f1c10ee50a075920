package filter_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	const metadata = `{"n": 7, "f": 1.5, "long": 12345678901234567890, "s": "north", "tags": ["a", "b"], "o": {"deep": true}, "none": null, "gt": 1}`
	for wanted, want := range map[string]bool{
		`{}`:                                     true,
		`{"n": 7}`:                               true,
		`{"n": 7.0, "s": "north"}`:               true,
		`{"n": [1, 7]}`:                          true,
		`{"n": [1, 2]}`:                          false,
		`{"tags": "b"}`:                          true,
		`{"tags": ["c", "b"]}`:                   true,
		`{"o.deep": true}`:                       true,
		`{"o": {"eq": {"deep": false}}}`:         false,
		`{"o": {"in": [{"deep": true}, 1]}}`:     true,
		`{"missing": null}`:                      false,
		`{"none": null}`:                         true,
		`{"gt": 1}`:                              true,
		`{"n": {"gt": 6}}`:                       true,
		`{"n": {"gt": 7}}`:                       false,
		`{"n": {"gte": 7, "lt": 8}}`:             true,
		`{"n": {"gte": 7, "lt": 7}}`:             false,
		`{"n": {"lte": 7.5}}`:                    true,
		`{"n": {"gt": "6"}}`:                     false,
		`{"f": {"gt": 1, "lt": 2}}`:              true,
		`{"long": {"gt": 12345678901234567889}}`: true,
		`{"long": {"gt": 12345678901234567890}}`: false,
		`{"s": {"gte": "n", "lt": "o"}}`:         true,
		`{"s": {"startswith": "no"}}`:            true,
		`{"s": {"endswith": "no"}}`:              false,
		`{"s": {"contains": "ort"}}`:             true,
		`{"tags": {"contains": "a"}}`:            true,
		`{"o": {"contains": "deep"}}`:            true,
		`{"s": {"in": ["north", "south"]}}`:      true,
		`{"s": {"not_in": ["north"]}}`:           false,
		`{"s": {"ne": "south"}}`:                 true,
		`{"s": {"ne": "north"}}`:                 false,
		`{"o": {"eq": {"deep": true}}}`:          true,
		`{"missing": {"ne": 1}}`:                 true,
		`{"missing": {"not_in": [1]}}`:           true,
		`{"missing": {"eq": null}}`:              false,
		`{"missing": {"lt": 1}}`:                 false,
		`{"missing": {"exists": false}}`:         true,
		`{"missing": {"exists": true}}`:          false,
		`{"none": {"exists": true}}`:             true,
		`{"n": {"exists": false}}`:               false,
		`{"tags": {"gt": 0}}`:                    false,
		`{"o": {"eq": {"$gt": 1}}}`:              false,
	} {
		f := parse(t, wanted)
		if got := filter.Matches([]byte(metadata), f); got != want {
			t.Errorf("%s: %v, want %v", wanted, got, want)
		}
	}
	for _, nothing := range []string{"", "null", "{}"} {
		if !filter.Matches([]byte(nothing), parse(t, `{"a": {"ne": 1}}`)) || filter.Matches([]byte(nothing), parse(t, `{"a": 1}`)) {
			t.Errorf("metadata %q is not taken for an empty object", nothing)
		}
	}
}

func parse(t *testing.T, text string) filter.Filter {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var wanted map[string]any
	if err := decoder.Decode(&wanted); err != nil {
		t.Fatal(err)
	}
	f, err := filter.Parse("filter", wanted)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wanted map[string]any
		says   string
	}{
		"an unknown operator": {map[string]any{"n": map[string]any{"gt": 1, "below": 2}}, `metadata_filter: field "n": unknown operator "below"`},
		"no known operator":   {map[string]any{"n": map[string]any{"greater": 5}}, `field "n": unknown operator "greater"; use one of eq, ne,`},
		"a member":            {map[string]any{"site": map[string]any{"city": "Porto"}}, `exists, or the field "site.city" for a member of an object, or eq to compare with one`},
		"no operators":        {map[string]any{"n": map[string]any{}}, `field "n": an object without operators`},
		"operators in a list": {map[string]any{"n": []any{1, map[string]any{"gt": 5}}}, `field "n": a list of values has an object; use {"in": [...]}`},
		"in without a list":   {map[string]any{"n": map[string]any{"in": 1}}, "operator in takes a list, not integer"},
		"a prefix of numbers": {map[string]any{"n": map[string]any{"startswith": 1}}, "operator startswith takes a string"},
		"MongoDB's operator":  {map[string]any{"n": map[string]any{"$gt": 1}}, `field "n": unknown operator "$gt"; use gt`},
		"another of its":      {map[string]any{"n": map[string]any{"$nin": []any{1}}}, `use not_in`},
		"an operator of Lua":  {map[string]any{"n": map[string]any{">=": 1}}, `unknown operator ">="; use gte`},
		"a list of filters":   {map[string]any{"$or": []any{map[string]any{"n": 1}}}, "$or is not an operator"},
		"exists with a text":  {map[string]any{"n": map[string]any{"exists": "yes"}}, "operator exists takes true or false"},
	} {
		_, err := filter.Parse("metadata_filter", test.wanted)
		if typed := new(tea.Error); !errors.As(err, &typed) || typed.Type != tea.ValidationError || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

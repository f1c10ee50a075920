package file_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

func condition(t *testing.T, path, op string, wanted any) file.Condition {
	t.Helper()
	c, err := file.NewCondition(path, op, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const plant = `{
	"name": "pump-1", "on": true, "temp": 71.5, "count": 9007199254740993, "none": null, "": "empty", "a.b": "dotted", "say \"hi\"": 1,
	"unit": {"name": "plant", "tags": ["hot", "wet", 5]},
	"parts": [{"id": 1, "ok": true}, {"id": 2, "ok": false}, {"id": "3"}], "matrix": [[1, 2], [3, 4]]
}`

func TestConditions(t *testing.T) {
	t.Parallel()
	document, err := value.Decode([]byte(plant))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, op string
		value    any
		want     string // paths of the nodes, "-" where it does not hold
	}{
		{"$.name", "eq", "pump-1", "$.name"},
		{"$.name", "", "pump-1", "$.name"},
		{"$.name", "=", "Pump-1", "-"},
		{"$['name']", "==", "pump-1", "$.name"},
		{`$["a.b"]`, "eq", "dotted", `$["a.b"]`},
		{`$[""]`, "eq", "empty", `$[""]`},
		{`$["say \"hi\""]`, "eq", int64(1), `$["say \"hi\""]`},
		{"$.a.b", "exists", nil, "-"},
		{"$.unit.tags[0]", "eq", "hot", "$.unit.tags[0]"},
		{"$.unit.tags[-1]", "eq", int64(5), "$.unit.tags[2]"},
		{"$.unit.tags[7]", "exists", nil, "-"},
		{"$.unit.tags[-4]", "exists", nil, "-"},
		{"$.unit.tags[*]", "eq", "wet", "$.unit.tags[1]"},
		{"$.parts[*].id", "gte", int64(1), "$.parts[0].id $.parts[1].id"},
		{"$.matrix[*][1]", "gt", 2.5, "$.matrix[1][1]"},
		{"$.unit.*", "contains", "hot", "$.unit.tags"},
		{"$.*", "eq", true, "$.on"},
		{"$", "contains", "unit", "$"},
		{"$.name", "contains", "ump", "$.name"},
		{"$.temp", "contains", "7", "-"},
		{"$.name", "startswith", "pump", "$.name"},
		{"$.name", "endswith", "-1", "$.name"},
		{"$.temp", "startswith", "7", "-"},
		{"$.temp", "gt", int64(71), "$.temp"},
		{"$.temp", "lte", 71.5, "$.temp"},
		{"$.temp", "lt", "99", "-"},
		{"$.count", "eq", int64(9007199254740993), "$.count"},
		{"$.count", "gt", int64(9007199254740992), "$.count"},
		{"$.count", "lt", 9007199254740994.0, "$.count"},
		{"$.name", "gt", "pump", "$.name"},
		{"$.name", "in", []any{"x", "pump-1"}, "$.name"},
		{"$.name", "in", []any{}, "-"},
		{"$.name", "not_in", []any{"x"}, ""},
		{"$.parts[*].id", "not_in", []any{"3"}, "-"},
		{"$.name", "ne", "x", ""},
		{"$.parts[*].ok", "!=", true, "-"},
		{"$.missing", "ne", "x", ""},
		{"$.missing", "eq", nil, "-"},
		{"$.none", "eq", nil, "$.none"},
		{"$.none", "exists", nil, "$.none"},
		{"$.none", "exists", true, "$.none"},
		{"$.missing", "exists", false, ""},
		{"$.name", "exists", false, "-"},
		{"$.unit", "eq", map[string]any{"name": "plant", "tags": []any{"hot", "wet", int64(5)}}, "$.unit"},
		{"$.name.x", "exists", nil, "-"},
		{"$.name[0]", "exists", nil, "-"},
		{"$.parts.id", "exists", nil, "-"},
	} {
		nodes, fits := file.MatchConditions([]file.Condition{condition(t, test.path, test.op, test.value)}, document)
		var paths []string
		for _, n := range nodes {
			paths = append(paths, n.Path)
		}
		got := strings.Join(paths, " ")
		if !fits {
			got = "-"
		}
		want(t, fmt.Sprint(test.path, " ", test.op, " ", test.value), got, test.want)
		for _, n := range nodes { // what is shown leads there
			p := condition(t, n.Path, "eq", n.Value)
			again, fits := file.MatchConditions([]file.Condition{p}, document)
			want(t, n.Path, fits && len(again) == 1, true)
		}
	}
}

func TestInvalidConditions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, op string
		value    any
	}{
		{"", "eq", 1},
		{"name", "eq", 1},
		{".name", "eq", 1},
		{"$name", "eq", 1},
		{"$.", "eq", 1},
		{"$..name", "eq", 1},
		{"$.a..b", "eq", 1},
		{"$[", "eq", 1},
		{"$[]", "eq", 1},
		{"$[a]", "eq", 1},
		{"$[0", "eq", 1},
		{"$[1:2]", "eq", 1},
		{"$[?(@.a)]", "eq", 1},
		{"$[01]", "eq", 1},
		{"$[99999999999]", "eq", 1},
		{"$['a", "eq", 1},
		{"$['a'", "eq", 1},
		{"$['a'x]", "eq", 1},
		{"$.a b", "eq", 1},
		{"$." + strings.Repeat("a", 2000), "eq", 1},
		{"$" + strings.Repeat("[0]", 40), "eq", 1},
		{"$.\xff", "eq", 1},
		{"$.a", "like", 1},
		{"$.a", "in", "x"},
		{"$.a", "not_in", nil},
		{"$.a", "startswith", int64(1)},
		{"$.a", "endswith", nil},
		{"$.a", "exists", "yes"},
	} {
		_, err := file.NewCondition(test.path, test.op, test.value)
		if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError {
			t.Errorf("%.50s %s %v gives %v, want a validation_error", test.path, test.op, test.value, err)
		}
	}
}

func TestSearch(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.put(t, "plant.json", plant)
		d.put(t, "deep/part.geojson", `{"name": "pump-2", "temp": 80}`)
		if _, err := d.Store(t.Context(), file.Draft{Path: "typed", Content: []byte(`{"name": "pump-3", "temp": 1}`), Type: "application/vnd.x+json"}); err != nil {
			t.Fatal(err)
		}
		d.put(t, "log.jsonl", "{\"name\": \"pump-4\", \"temp\": 90}\n\n{broken\n  {\"name\": \"fan\"}\r\n{\"name\": \"pump-5\", \"temp\": 70}")
		d.put(t, "broken.json", `{"name": "pump-6"`)
		d.put(t, "notes.md", `{"name": "pump-7"}`)
		d.put(t, "large.json", `{"name": "pump-8", "pad": "`+strings.Repeat("x", file.MaxDocument)+`"}`)
		d.put(t, "nul.json", "{\"name\": \"pump-9\"}\x00")
		d.put(t, "archive/sessions/s/a.json", `{"name": "pump-10"}`)
		search := func(limit int, q file.Query, conditions ...file.Condition) string {
			t.Helper()
			found, err := d.Search(t.Context(), file.DocumentSearch{Conditions: conditions, Query: q, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			words := []string{fmt.Sprintf("searched %d, skipped %d, truncated %v:", found.Searched, found.Skipped, found.Truncated)}
			for _, f := range found.Documents {
				var values []string
				for _, n := range f.Nodes {
					values = append(values, fmt.Sprint(n.Value))
				}
				words = append(words, fmt.Sprintf("%s:%d(%s)", f.Path, f.Line, strings.Join(values, ",")))
			}
			return strings.Join(words, " ")
		}
		pump := condition(t, "$.name", "startswith", "pump")
		want(t, "all", search(10, file.Query{}, pump), "searched 4, skipped 3, truncated false: log.jsonl:1(pump-4) log.jsonl:5(pump-5) plant.json:0(pump-1) typed:0(pump-3)")
		want(t, "both", search(10, file.Query{}, pump, condition(t, "$.temp", ">", int64(70))), "searched 4, skipped 3, truncated false: log.jsonl:1(pump-4,90) plant.json:0(pump-1,71.5)")
		want(t, "limit", search(2, file.Query{}, pump), "searched 3, skipped 3, truncated true: log.jsonl:1(pump-4) log.jsonl:5(pump-5)")
		want(t, "archived", search(10, file.Query{Prefix: "archive/sessions/"}, pump), "searched 1, skipped 0, truncated false: archive/sessions/s/a.json:0(pump-10)")
		want(t, "without", search(10, file.Query{Prefix: "log"}, condition(t, "$.temp", "exists", false)), "searched 1, skipped 1, truncated false: log.jsonl:4()")

		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		found, err := d.Search(ctx, file.DocumentSearch{Conditions: []file.Condition{pump}, Limit: 10})
		want(t, "without time", err == nil && found.Truncated, true)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Search(gone, file.DocumentSearch{Conditions: []file.Condition{pump}, Limit: 10}); !errors.Is(err, context.Canceled) {
			t.Errorf("a search whose caller gave up gives %v", err)
		}
	})
}

func FuzzJSONPath(f *testing.F) {
	for _, path := range []string{"$", "$.a", `$["a"]`, "$['a\\'b'][0][-1].*[*]", "$..", "$[", "$.ä-1", `$["\\"]`} {
		f.Add(path, plant)
	}
	f.Fuzz(func(t *testing.T, path, document string) {
		c, err := file.NewCondition(path, "exists", nil)
		if err != nil {
			return
		}
		v, err := value.Decode([]byte(document))
		if err != nil {
			return
		}
		nodes, fits := file.MatchConditions([]file.Condition{c}, v)
		want(t, "holds for what it finds", fits, len(nodes) > 0)
		for _, n := range nodes {
			same, err := file.NewCondition(n.Path, "eq", n.Value)
			if err != nil && len(n.Path) <= 1024 {
				t.Fatalf("%q found %q, which is not a path: %v", path, n.Path, err)
			}
			if _, fits := file.MatchConditions([]file.Condition{same}, v); err == nil && !fits {
				t.Errorf("%q found %q, where the value is not", path, n.Path)
			}
		}
	})
}

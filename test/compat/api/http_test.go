package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestHTTPPromise compares the API of `tea serve` and the events with the listing of the
// release: no line is removed or changed within /v1. -update adds new ones.
func TestHTTPPromise(t *testing.T) {
	t.Parallel()
	lines := map[string]bool{}
	api := document(t, "../../../cmd/tea-serve/internal/server/openapi.json")
	for path, item := range api["paths"].(map[string]any) {
		for method, v := range item.(map[string]any) {
			operation, ok := v.(map[string]any)
			if !ok {
				continue
			}
			request := strings.ToUpper(method) + " " + path
			lines[request] = true
			parameters, _ := operation["parameters"].([]any)
			for _, p := range parameters {
				if p, ok := p.(map[string]any); ok && p["name"] != nil {
					lines[fmt.Sprintf("%s: %v %v", request, p["in"], p["name"])] = true
				}
			}
			responses, _ := operation["responses"].(map[string]any)
			for code := range responses {
				lines[request+": response "+code] = true
			}
		}
	}
	for name, schema := range api["components"].(map[string]any)["schemas"].(map[string]any) {
		properties(lines, name, schema)
	}
	properties(lines, "event", document(t, "../../../docs/reference/events.schema.json"))
	now := slices.Sorted(maps.Keys(lines))
	const file = "http.list"
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, line := range before {
		if !lines[line] {
			t.Errorf("removed or changed: %s", line)
		}
	}
	if len(before) < len(now) {
		t.Errorf("%d lines are new; run this test with -update", len(now)-len(before))
	}
}

func document(t *testing.T, file string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	document := map[string]any{}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// properties adds a line for each property in a schema, with its type, and for each listed value.
func properties(lines map[string]bool, path string, v any) {
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			properties(lines, path, part)
		}
	case map[string]any:
		values, _ := v["enum"].([]any)
		for _, value := range values {
			lines[fmt.Sprintf("%s = %v", path, value)] = true
		}
		inside, _ := v["properties"].(map[string]any)
		for name, schema := range inside {
			part, ok := schema.(map[string]any)
			if !ok {
				continue
			}
			kind := part["type"]
			if reference, ok := part["$ref"].(string); ok {
				kind = reference[strings.LastIndex(reference, "/")+1:]
			}
			if kind != nil {
				lines[fmt.Sprintf("%s.%s: %v", path, name, kind)] = true
			}
			properties(lines, path+"."+name, schema)
		}
		for _, key := range []string{"items", "allOf", "anyOf", "oneOf", "then", "else", "additionalProperties"} {
			properties(lines, path, v[key])
		}
	}
}

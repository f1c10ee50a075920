package jsonschema_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	reference "github.com/google/jsonschema-go/jsonschema"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// TestPublicSuite runs the JSON Schema test suite as it comes with
// google/jsonschema-go. Schemas that refer to what is outside of them, such
// as the drafts' own schemas, are refused here by design and left out.
func TestPublicSuite(t *testing.T) {
	t.Parallel()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil {
		t.Skip("the module with the suite is not here:", err)
	}
	ran := 0
	for draft, uri := range map[string]string{"draft7": "http://json-schema.org/draft-07/schema#", "draft2020-12": "https://json-schema.org/draft/2020-12/schema"} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "jsonschema", "testdata", draft, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			ran += suiteFile(t, file, uri)
		}
	}
	if ran < 1500 {
		t.Errorf("only %d cases of the suite ran", ran)
	}
}

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := value.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func compile(t testing.TB, text string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.Compile(decode(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func suiteFile(t *testing.T, file, draft string) (ran int) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Description string
		Schema      json.RawMessage
		Tests       []struct {
			Description string
			Data        json.RawMessage
			Valid       bool
		}
	}
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, group := range groups {
		schema := decode(t, string(group.Schema))
		if object, ok := schema.(map[string]any); ok && object["$schema"] == nil {
			object["$schema"] = draft
		}
		s, err := jsonschema.Compile(schema)
		if err != nil {
			if !strings.Contains(err.Error(), "nothing outside is loaded") {
				t.Errorf("%s: %s: %v", filepath.Base(file), group.Description, err)
			}
			continue
		}
		for _, test := range group.Tests {
			ran++
			if problems := s.Validate(decode(t, string(test.Data))); (problems == nil) != test.Valid {
				t.Errorf("%s: %s: %s: got %v, want valid %v", filepath.Base(file), group.Description, test.Description, problems, test.Valid)
			}
		}
	}
	return ran
}

// TestAgreesWithAnotherImplementation compares every pair of a schema and a
// value with what google/jsonschema-go says of them.
func TestAgreesWithAnotherImplementation(t *testing.T) {
	t.Parallel()
	values := []string{`null`, `true`, `0`, `3`, `3.0`, `-1.5`, `""`, `"ab"`, `"häß"`, `[]`, `[1]`, `[1,1]`, `["a",1,null]`, `[[1],{"a":1}]`, `{}`, `{"a":1}`, `{"a":"x","b":2}`, `{"a":{"a":{"a":3}}}`, `{"b":[1,2],"c":null}`}
	for _, schema := range []string{
		`true`, `{"type":["integer","string"]}`, `{"type":"number","minimum":0,"exclusiveMaximum":3}`, `{"multipleOf":1.5}`, `{"enum":[3,"ab",[1],{"a":1}]}`, `{"const":null}`,
		`{"minLength":1,"maxLength":2,"pattern":"^a"}`, `{"minItems":1,"maxItems":2,"uniqueItems":true}`, `{"prefixItems":[{"type":"integer"}],"items":{"type":"integer"}}`, `{"contains":{"const":1},"maxContains":1}`,
		`{"properties":{"a":{"type":"integer"}},"additionalProperties":false}`, `{"required":["a"],"maxProperties":1}`, `{"patternProperties":{"^[ab]$":{"type":["integer","array"]}}}`, `{"propertyNames":{"enum":["a","b"]}}`,
		`{"dependentRequired":{"b":["c"]}}`, `{"dependentSchemas":{"b":{"required":["a"]}}}`, `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"a":{"$ref":"#/$defs/n"}},"maxProperties":1}}}`,
		`{"anyOf":[{"type":"string"},{"required":["a"]}]}`, `{"oneOf":[{"type":"integer"},{"minimum":1},{"type":"array"}]}`, `{"not":{"type":["object","null"]}}`, `{"if":{"required":["b"]},"then":{"required":["c"]},"else":{"not":{"type":"array"}}}`,
		`{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":{"type":"array"}}`, `{"prefixItems":[true],"contains":{"type":"null"},"unevaluatedItems":{"type":"string"}}`,
	} {
		var parsed reference.Schema
		if err := json.Unmarshal([]byte(schema), &parsed); err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		resolved, err := parsed.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		ours := compile(t, schema)
		for _, text := range values {
			v, err := value.Decode([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := ours.Validate(v) == nil, resolved.Validate(v) == nil; got != want {
				t.Errorf("%s with %s: valid %v, the other one says %v", schema, text, got, want)
			}
		}
	}
}

package subproc

import (
	"encoding/json"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

func schemaOf(t *testing.T, text string) *schema.Schema {
	t.Helper()
	if text == "" {
		return nil
	}
	s := new(schema.Schema)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemasOfTwoVersions(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","properties":{"a":{"type":"integer","description":"old"}},"required":["a"],"additionalProperties":false}`
	for name, c := range map[string]struct {
		old, now       string
		params, result string // the reasons; empty if compatible
	}{
		"equal":             {object, object, "", ""},
		"none":              {"", "", "", ""},
		"described":         {object, strings.Replace(object, "old", "new", 1), "", ""},
		"now anything":      {object, "", "", "promises less"},
		"before anything":   {"", object, "accepts less", ""},
		"one more":          {object, strings.Replace(object, `"a":`, `"b":{"type":"string"},"a":`, 1), "", ""},
		"one more required": {object, strings.NewReplacer(`"a":`, `"b":{"type":"string"},"a":`, `["a"]`, `["a","b"]`).Replace(object), "requires b", ""},
		"one less":          {object, `{"type":"object","additionalProperties":false}`, "no longer accepts a", "no longer always has a"},
		"no longer always":  {object, strings.Replace(object, `["a"]`, `[]`, 1), "", "no longer always has a"},
		"other type":        {object, strings.Replace(object, "integer", "string", 1), "a: its type has changed", "a: its type has changed"},
		"wider type":        {object, strings.Replace(object, "integer", "number", 1), "", "a: its type has changed"},
		"wider enum":        {`{"enum":["a"]}`, `{"enum":["a","b"]}`, "", "enum"},
		"smaller enum":      {`{"enum":["a","b"]}`, `{"enum":["a"]}`, "enum", ""},
		"new limit":         {`{"type":"integer"}`, `{"type":"integer","minimum":3}`, "minimum", ""},
		"limit is gone":     {`{"type":"integer","minimum":3}`, `{"type":"integer"}`, "", ""},
		"items":             {`{"items":{"type":"integer"}}`, `{"items":{"type":"string"}}`, "[]: its type", "[]: its type"},
		"named like a note": {`{"properties":{"title":{"type":"string"}}}`, `{"properties":{"title":{"type":"integer"}}}`, "title: its type", "title: its type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := func(params, result string) tea.Manifest {
				return tea.Manifest{Name: "m", Actions: []tea.ActionInfo{{Name: "m.a", Params: schemaOf(t, params), Result: schemaOf(t, result)}}}
			}
			check := func(kind string, err error, want string) {
				if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("%s: got %v, want %q", kind, err, want)
				}
			}
			check("parameters", compatible(manifest(c.old, ""), manifest(c.now, "")), c.params)
			check("result", compatible(manifest("", c.old), manifest("", c.now)), c.result)
		})
	}
}

func TestActionsOfTwoVersions(t *testing.T) {
	t.Parallel()
	old := tea.Manifest{Name: "m", Actions: []tea.ActionInfo{{Name: "m.a", Idempotent: true}, {Name: "m.b", Once: true}}}
	for want, now := range map[string]tea.Manifest{
		`reports the name "n"`:                      {Name: "n", Actions: old.Actions},
		"no action m.a":                             {Name: "m"},
		"m.b no longer has its effect at most once": {Name: "m", Actions: []tea.ActionInfo{{Name: "m.a", Idempotent: true}, {Name: "m.b"}}},
		"m.a is no longer idempotent":               {Name: "m", Actions: []tea.ActionInfo{{Name: "m.a"}}},
	} {
		if err := compatible(old, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

package llm_test

import (
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/llm"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// Fixed arguments in the place of a schema were sent to the model as one.
func TestParametersOfAToolThatAreNotASchemaAreRefused(t *testing.T) {
	t.Parallel()
	s, err := jsonschema.Compile(schema.Of[llm.ToolsParams]())
	if err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	for name, c := range map[string]struct {
		parameters object
		want       string
	}{
		"a schema":                       {object{"type": "object", "properties": object{"city": object{"type": "string"}}, "required": []any{"city"}}, ""},
		"nothing":                        {object{}, ""},
		"an annotation":                  {object{"type": "object", "x-order": int64(1), "description": "where"}, ""},
		"a reference":                    {object{"$ref": "#/$defs/a", "$defs": object{"a": object{"type": "object"}}}, ""},
		"fixed arguments":                {object{"embed": true}, "embed"},
		"properties without the keyword": {object{"city": object{"type": "string"}}, "city"},
		"a property named type":          {object{"type": object{"type": "string"}}, "type"},
		"an argument that is a list":     {object{"type": "array"}, "type"},
		"a type instead of a property":   {object{"type": "object", "properties": object{"city": "string"}}, "properties.city"},
		"a name instead of a list":       {object{"type": "object", "required": "city"}, "required"},
	} {
		for form, tool := range map[string]object{
			"parameters":          {"action": "weather.get", "parameters": c.parameters},
			"function.parameters": {"type": "function", "function": object{"name": "weather.get", "parameters": c.parameters}},
		} {
			problems := s.Validate(object{"prompt": "hi", "tools": []any{"web.search", tool}})
			text := jsonschema.Join(problems)
			if c.want == "" && len(problems) > 0 || c.want != "" && !strings.Contains(text, "tools[1]."+form+"."+c.want) {
				t.Errorf("%s in %s: %q", name, form, text)
			}
		}
	}
}

package jsonschema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	s := compile(t, `{
		"properties": {
			"text": {"type": "string", "default": "d"},
			"choice": {"type": ["integer", "null"], "default": 3},
			"names": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
			"mode": {"enum": ["a", "b"]},
			"any": {},
			"inner": {"properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 1.5}}},
			"list": {"type": "array", "items": {"$ref": "#/$defs/item"}}
		},
		"additionalProperties": {"type": "string"},
		"$defs": {"item": {"type": "object", "properties": {"n": {"type": "integer", "default": 0}}}}
	}`)
	for _, test := range []struct{ name, given, want string }{
		{"defaults", `{}`, `{"choice":3,"text":"d"}`},
		{"given", `{"choice":0,"text":""}`, `{"choice":0,"text":""}`},
		{"null where it is not allowed", `{"text":null,"names":null,"mode":null,"list":null,"more":null}`, `{"choice":3,"text":"d"}`},
		{"null where it is allowed", `{"choice":null,"any":null}`, `{"any":null,"choice":null,"text":"d"}`},
		{"inside", `{"inner":{"x":null},"list":[{},{"n":1},null,3]}`, `{"choice":3,"inner":{"y":1.5},"list":[{"n":0},{"n":1},null,3],"text":"d"}`},
		{"another type", `[null]`, `[null]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			given := decode(t, test.given)
			completed, changed := s.Complete(given)
			if changed == (test.given == test.want) {
				t.Errorf("changed is %v", changed)
			}
			got, err := value.Encode(completed)
			if d := cmp.Diff(test.want, string(got)); err != nil || d != "" {
				t.Error(err, d)
			}
			if d := cmp.Diff(decode(t, test.given), given); d != "" {
				t.Errorf("the value was changed: %s", d)
			}
		})
	}
}

// Tools of MCP servers have defaults that their own schema refuses: every call that
// left the parameter out was refused.
func TestDefaultThatItsSchemaRefuses(t *testing.T) {
	t.Parallel()
	for property, want := range map[string]string{
		`{"type": "array", "default": null}`:                                                             `{}`,
		`{"type": "integer", "default": "20"}`:                                                           `{}`,
		`{"type": "string", "enum": ["a", "b"], "default": ""}`:                                          `{}`,
		`{"type": "integer", "minimum": 1, "default": 0}`:                                                `{}`,
		`{"$ref": "#/$defs/short", "default": "long"}`:                                                   `{}`,
		`{"$ref": "#/$defs/short", "default": "ok"}`:                                                     `{"p":"ok"}`,
		`{"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}`:                             `{"p":null}`,
		`{"type": "object", "properties": {"q": {"type": "boolean", "default": "no"}}, "default": {}}`:   `{"p":{}}`,
		`{"type": "object", "properties": {"q": {"type": "boolean"}}, "default": {"q": "no"}}`:           `{}`,
		`{"type": "array", "items": {"properties": {"q": {"type": "boolean", "default": 1}}}}`:           `{}`,
		`{"type": "array", "unevaluatedItems": false, "prefixItems": [{"const": 1}], "default": [1, 2]}`: `{}`,
	} {
		s := compile(t, `{"type": "object", "properties": {"p": `+property+`}, "$defs": {"short": {"type": "string", "maxLength": 3}}}`)
		completed, _ := s.Complete(map[string]any{})
		if got, err := value.Encode(completed); err != nil || string(got) != want {
			t.Errorf("%s: completed to %s, %v, want %s", property, got, err, want)
		}
		if problems := s.Validate(completed); problems != nil {
			t.Errorf("%s: %v", property, problems)
		}
	}
}

func TestDefaultsThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"properties": {"path": {"type": "string", "default": "."}, "url": {"type": "string", "default": ""}, "n": {"type": "integer"}}, "not": {"required": ["path", "url"]}}`)
	given := map[string]any{"url": "x"}
	if fitted, changed, problems := s.Fit(given, nil); problems != nil || changed || len(fitted.(map[string]any)) != 1 {
		t.Errorf("%v, %v, %v", fitted, changed, problems)
	}
	if _, _, problems := s.Fit(map[string]any{"n": "x"}, nil); len(problems) == 0 {
		t.Error("a value that does not fit was accepted")
	}
}

func TestCheckKeywords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`true`: "",
		`{"type":"object","x-tea":1,"oneOf":[{"const":1},{"not":{"format":"uuid"}}],"$defs":{"minimun":{}},"default":{"minimun":1}}`: "",
		`{"minimun":1}`: `schema: the keyword "minimun" is not supported; did you mean "minimum"?`,
		`{"properties":{"a":{"items":[{"$recursiveRef":"#"}]}}}`: `schema at properties.a.items[0]: the keyword "$recursiveRef" is not supported`,
	} {
		err := jsonschema.CheckKeywords(decode(t, text))
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

package jsonschema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

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

// lines writes problems as "path: message".
func lines(problems []jsonschema.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Path+": "+p.Message)
	}
	return out
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema, value string
		want                []string
	}{
		{"fits", `{"type":"object","required":["a"]}`, `{"a":1}`, nil},
		{"type", `{"type":"integer"}`, `"x"`, []string{`: expected integer, got string "x"`}},
		{"types", `{"type":["integer","null","array"]}`, `{}`, []string{`: expected integer, null or array, got an object`}},
		{"whole float is an integer", `{"type":"integer"}`, `3.0`, nil},
		{"fraction is not an integer", `{"type":"integer"}`, `3.5`, []string{`: expected integer, got number 3.5`}},
		{"long integer", `{"type":"integer","maximum":9007199254740993}`, `9007199254740994`, []string{`: must be at most 9007199254740993, got 9007199254740994`}},
		{"longer integer", `{"type":"integer","minimum":123456789012345678901234567890}`, `123456789012345678901234567889`, []string{`: must be at least 123456789012345678901234567890, got 123456789012345678901234567889`}},
		{"decimal multiples", `{"items":{"multipleOf":0.01}}`, `[0.07]`, nil},
		{"multipleOf", `{"multipleOf":0.01}`, `0.075`, []string{`: must be a multiple of 0.01, got 0.075`}},
		{"decimal multiple fits", `{"multipleOf":0.01}`, `19.99`, nil},
		{"exclusive bounds", `{"exclusiveMinimum":0,"exclusiveMaximum":1}`, `0`, []string{`: must be more than 0, got 0`}},
		{
			"all at once",
			`{"properties":{"items":{"items":{"properties":{"name":{"type":"string","minLength":2},"n":{"type":"integer"}},"required":["name","id"]}},"mode":{"enum":["fast","slow"]}},"additionalProperties":false,"required":["mode","url"]}`,
			`{"items":[{"name":"a","n":"x"},{"id":1,"name":"ab"},{}],"mode":"fsat","itmes":[]}`,
			[]string{
				`: "url" is required`,
				`items[0]: "id" is required`,
				`items[0].n: expected integer, got string "x"`,
				`items[0].name: must have at least 2 characters, has 1`,
				`items[2]: "name" is required`,
				`items[2]: "id" is required`,
				`itmes: unknown member "itmes"; did you mean "items"?`,
				`mode: must be one of "fast", "slow"; got "fsat"; did you mean "fast"?`,
			},
		},
		{"odd names", `{"additionalProperties":{"type":"integer"}}`, `{"a b":"x","":"y","c.d":1}`, []string{`[""]: expected integer, got string "y"`, `["a b"]: expected integer, got string "x"`}},
		{"characters, not bytes", `{"maxLength":2}`, `"äöü"`, []string{`: must have at most 2 characters, has 3`}},
		{"pattern", `{"pattern":"^a+$"}`, `"ab"`, []string{`: must match the pattern ^a+$, got "ab"`}},
		{"pattern that is explained", `{"pattern":"^a+$","description":"letters a"}`, `"ab"`, []string{`: must match the pattern ^a+$ (letters a), got "ab"`}},
		{"const", `{"const":{"a":1}}`, `{"a":2}`, []string{`: must be {"a":1}, got {"a":2}`}},
		{"enum by value", `{"enum":[1,{"a":[2]}]}`, `{"a":[2.0]}`, nil},
		{"unique", `{"uniqueItems":true}`, `[1,"1",{"a":1,"b":2},1.0,{"b":2.0,"a":1}]`, []string{`[3]: is the same as item 0; items must be unique`, `[4]: is the same as item 2; items must be unique`}},
		{"contains", `{"contains":{"type":"string"},"minContains":2}`, `[1,"a"]`, []string{`: must contain at least 2 items of the wanted kind, has 1`}},
		{"tuple", `{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `[1,2,"c"]`, []string{`[0]: expected string, got integer 1`, `[2]: expected integer, got string "c"`}},
		{"draft 7 tuple", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, `["a",2]`, []string{`[1]: is not allowed here`}},
		{"dependencies", `{"dependencies":{"card":["cvc"],"gift":{"required":["note"]}}}`, `{"card":1,"gift":1}`, []string{`: "cvc" is required where "card" is given`, `: "note" is required`}},
		{"member names", `{"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"A1":1}`, []string{`A1: its name must match the pattern ^[a-z]+$, got "A1"`}},
		{"pattern properties", `{"patternProperties":{"^n_":{"type":"integer"}},"additionalProperties":false}`, `{"n_a":"x","b":1}`, []string{`b: unknown member "b"`, `n_a: expected integer, got string "x"`}},
		{"anyOf of types", `{"anyOf":[{"type":"string"},{"type":"array"}]}`, `5`, []string{`: expected array or string, got integer 5`}},
		{"anyOf with one of the type", `{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}`, `{}`, []string{`: "a" is required`}},
		{
			"oneOf told apart by a member",
			`{"oneOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind"]},{"properties":{"kind":{"const":"b"},"y":{"type":"integer"}},"required":["kind","y"]}]}`,
			`{"kind":"b","y":"n"}`,
			[]string{`y: expected integer, got string "n"`},
		},
		{"one of two members", `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, []string{`: needs a or b`}},
		{"none fits", `{"anyOf":[{"required":["a","c"]},{"required":["b"]}]}`, `{}`, []string{`: fits none of the 2 allowed forms: (1) "a" is required; (2) "b" is required`}},
		{"oneOf fits two", `{"oneOf":[{"minimum":1},{"maximum":5}]}`, `3`, []string{`: must fit exactly one of 2 forms, fits forms 1 and 2`}},
		{"oneOf of two members", `{"oneOf":[{"required":["a"]},{"required":["b"]},{"required":["c"]}]}`, `{"a":1,"c":1}`, []string{`: only one of a, b, c is allowed: remove a or c`}},
		{"not", `{"not":{"type":"string"}}`, `"a"`, []string{`: must not be of type string`}},
		{"if then", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, []string{`: "b" is required, because a is given`}},
		{"if then of a value", `{"if":{"properties":{"kind":{"enum":["a","b"]}}},"then":{"properties":{"x":false}}}`, `{"kind":"a","x":1}`, []string{`x: is not allowed here, because kind is a or b`}},
		{"key of the whole value", `{"properties":{"to":{"items":{"type":"string","x-tea-keyOf":"/targets"}}}}`, `{"to":["ops","opz"],"targets":{"ops":{}}}`, []string{`to[1]: "opz" is not in targets; did you mean "ops"?`}},
		{"key of an absent member", `{"properties":{"to":{"x-tea-keyOf":"targets"}}}`, `{"to":"ops"}`, []string{`to: "ops" is not in targets`}},
		{"key of what is not an object", `{"properties":{"to":{"x-tea-keyOf":"targets"}}}`, `{"to":"ops","targets":"ops"}`, nil},
		{
			"keys in a text",
			`{"items":{"properties":{"argv":{"items":{"x-tea-keyOf":"params","x-tea-keyPattern":"\\{([a-z]+)\\}"}}}}}`,
			`[{"argv":["{a}{b}","{B}"],"params":{"b":{}}},{"argv":["{a}"],"params":{"a":{}}}]`,
			[]string{`[0].argv[0]: "a" is not in params`},
		},
		{"maximum in another member", `{"items":{"properties":{"min":{"x-tea-atMost":"max"}}}}`, `[{"min":2,"max":1.5},{"min":1,"max":1},{"min":1},{"min":1,"max":"a"}]`, []string{`[0].min: must be at most max, which is 1.5, got 2`}},
		{"maximum beside the whole value", `{"x-tea-atMost":"max"}`, `1`, nil},
		{"if else", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{}`, []string{`: "c" is required`}},
		{"unevaluated", `{"allOf":[{"properties":{"a":{}}}],"properties":{"b":{}},"unevaluatedProperties":false}`, `{"a":1,"b":1,"c":1}`, []string{`c: is not allowed here`}},
		{"false", `{"properties":{"a":false}}`, `{"a":1}`, []string{`a: is not allowed here`}},
		{"bool schema", `false`, `1`, []string{`: is not allowed here`}},
		{"reference", `{"$defs":{"pos":{"type":"integer","minimum":0}},"properties":{"a":{"$ref":"#/$defs/pos"}}}`, `{"a":-1}`, []string{`a: must be at least 0, got -1`}},
		{"anchor", `{"$defs":{"x":{"$anchor":"pos","minimum":0}},"$ref":"#pos"}`, `-1`, []string{`: must be at least 0, got -1`}},
		{"id inside", `{"$id":"https://example.com/a","$defs":{"x":{"$id":"b","type":"string"}},"items":{"$ref":"b"}}`, `[1]`, []string{`[0]: expected string, got integer 1`}},
		{"recursive", `{"properties":{"next":{"$ref":"#"},"v":{"type":"integer"}}}`, `{"next":{"next":{"v":"x"}}}`, []string{`next.next.v: expected integer, got string "x"`}},
		{"the same problem twice is one", `{"allOf":[{"type":"string"},{"type":"string"}]}`, `1`, []string{`: expected string, got integer 1`}},
		{"unknown format", `{"format":"phone"}`, `"x"`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := compile(t, c.schema).Validate(decode(t, c.value))
			if diff := cmp.Diff(c.want, lines(got)); diff != "" {
				t.Errorf("%s with %s (-want +got):\n%s", c.schema, c.value, diff)
			}
		})
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for format, texts := range map[string]struct{ good, bad []string }{
		"date-time": {
			[]string{"2026-01-31T12:00:00Z", "2026-01-31t12:00:00.123+02:00", "1998-12-31T23:59:60Z", "1998-12-31T15:59:60.5-08:00"},
			[]string{"2026-01-31", "2026-02-30T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31 12:00:00Z", "1998-12-31T22:59:60Z", "2026-01-31T12:00:00,5Z", ""},
		},
		"re2":      {[]string{"^a+$", ""}, []string{"(", "a**"}},
		"timezone": {[]string{"Europe/Berlin", "UTC", ""}, []string{"Europe/Berlinn", "../etc"}},
		"date":     {[]string{"2024-02-29"}, []string{"2023-02-29", "2024-2-9", "x"}},
		"email":    {[]string{"a@b.c", "a.b+c@example.com"}, []string{"a", "a@", "Joe <a@b.c>", "a b@c.d"}},
		"uri":      {[]string{"https://a.b/c?d#e", "urn:x:y", "mailto:a@b.c"}, []string{"/a/b", "a b", "http://ex ample", "ä:b", "\\\\x\\y"}},
		"uuid":     {[]string{"123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000"}, []string{"123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g"}},
		"ipv4":     {[]string{"127.0.0.1"}, []string{"256.0.0.1", "1.2.3", "01.2.3.4", "::1"}},
		"ipv6":     {[]string{"::1", "fe80::1"}, []string{"fe80::1%eth0", "127.0.0.1", "12345::"}},
	} {
		s := compile(t, `{"format":"`+format+`"}`)
		for _, text := range texts.good {
			if got := s.Validate(text); got != nil {
				t.Errorf("%s %q: %v", format, text, got)
			}
		}
		for _, text := range texts.bad {
			if got := s.Validate(text); len(got) != 1 {
				t.Errorf("%s %q gives %v, want one problem", format, text, got)
			}
		}
	}
}

func TestCompileErrorsNameThePlace(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"strng"}`:                       `schema at type: unknown type "strng"; did you mean "string"?`,
		`{"properties":{"a":{"minimum":"1"}}}`:   `schema at properties.a.minimum: expected a number, got string "1"`,
		`{"items":[{"type":1}]}`:                 `schema at items[0].type: expected a list of strings, got integer 1`,
		`{"properties":{"a b":{"pattern":"("}}}`: "schema at properties[\"a b\"].pattern: the pattern \"(\" is not valid: error parsing regexp: missing closing ): `(`",
		`{"required":"a"}`:                       `schema at required: expected a list of strings, got string "a"`,
		`{"anyOf":[]}`:                           `schema at anyOf: expected a list of schemas that is not empty, got an array of 0 items`,
		`{"anyOf":[1]}`:                          `schema at anyOf[0]: expected an object or a boolean, got integer 1`,
		`{"$ref":"#"}`:                           `schema: a reference leads back here without descending into the value`,
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`: `schema at ["$defs"].a: a reference leads back here without descending into the value`,
		`{"$ref":"https://example.com/other"}`:                                      `schema at ["$ref"]: "https://example.com/other" does not lead to a place in this document; nothing outside is loaded`,
		`{"items":{"$ref":"#/$defs/no"}}`:                                           `schema at items["$ref"]: "#/$defs/no": nothing at #/$defs/no`,
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`:                     `schema at ["$schema"]: "http://json-schema.org/draft-04/schema#" is not supported; use draft 2020-12 or 7`,
		`{"minLength":-1}`: `schema at minLength: expected an integer that is not negative, got integer -1`,
		`{"multipleOf":0}`: `schema at multipleOf: expected a number above 0, got integer 0`,
		`"x"`:              `schema: expected an object or a boolean, got string "x"`,
	} {
		_, err := jsonschema.Compile(decode(t, schema))
		var typed *jsonschema.Error
		if !errors.As(err, &typed) || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", schema, err, want)
		}
	}
}

func TestCompileTakesSchemasOfTheSDK(t *testing.T) {
	t.Parallel()
	type params struct {
		URL   string `json:"url"`
		Limit int    `json:"limit,omitempty" minimum:"1"`
	}
	s, err := jsonschema.Compile(schema.Of[params]())
	if err != nil {
		t.Fatal(err)
	}
	got := lines(s.Validate(map[string]any{"ulr": "x", "limit": int64(0)}))
	want := []string{`: "url" is required`, `limit: must be at least 1, got 0`, `ulr: unknown member "ulr"; did you mean "url"?`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValidateTemplated(t *testing.T) {
	t.Parallel()
	s := compile(t, `{
		"properties": {
			"n": {"type": "integer"}, "list": {"items": {"type": "integer"}, "uniqueItems": true, "contains": {"const": 3}},
			"o": {"enum": [{"a": 1}]}, "either": {"oneOf": [{"type": "integer"}, {"type": "number"}]}, "no": {"not": {"required": ["x"]}},
			"cond": {"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["z"]}}
		}, "required": ["url"], "additionalProperties": false}`)
	v := decode(t, `{"n":"{{ n }}","list":["{{ a }}","{{ a }}",1,1,"x"],"o":{"a":"{{ a }}"},"either":"{{ e }}","no":{"x":"{{ x }}"},"cond":{"k":"{{ k }}"},"nn":1}`)
	isTemplate := func(path string) bool { return isTemplateAt(v, path) }
	got := lines(s.ValidateTemplated(v, isTemplate))
	want := []string{
		`: "url" is required`,
		`list[4]: expected integer, got string "x"`,
		`list[3]: is the same as item 2; items must be unique`,
		`nn: unknown member "nn"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// isTemplateAt looks for the templates of the test's value by their path.
func isTemplateAt(v any, path string) bool {
	for _, p := range []string{"n", "list[0]", "list[1]", "o.a", "either", "no.x", "cond.k"} {
		if p == path {
			return true
		}
	}
	return path == "" && v == nil
}

func TestHostileSchemasEnd(t *testing.T) {
	t.Parallel()
	doubling := `{"$defs":{"a00":{"type":"string"}`
	for i := 1; i < 40; i++ {
		below := `{"$ref":"#/$defs/a` + itoa(i-1) + `"}`
		doubling += `,"a` + itoa(i) + `":{"anyOf":[` + below + `,` + below + `]}`
	}
	doubling += `},"$ref":"#/$defs/a39"}`
	got := compile(t, doubling).Validate(int64(1))
	if len(got) == 0 || !strings.Contains(got[len(got)-1].Message, "too many steps") {
		t.Errorf("got %v, want the check to be given up", got)
	}
	if _, err := jsonschema.Compile(decode(t, strings.Repeat(`{"not":`, 400)+`{}`+strings.Repeat(`}`, 400))); err == nil {
		t.Error("a schema that nests 400 deep compiles")
	}
	deep := decode(t, strings.Repeat(`[`, 5000)+strings.Repeat(`]`, 5000))
	if got := compile(t, `{"items":{"$ref":"#"}}`).Validate(deep); len(got) != 1 || !strings.Contains(got[0].Message, "nests deeper") {
		t.Errorf("got %v, want the nesting to be refused", got)
	}
	if got := compile(t, `{"pattern":"^(a+)+$"}`).Validate(strings.Repeat("a", 50_000) + "b"); len(got) != 1 {
		t.Errorf("got %d problems, want 1", len(got))
	}
	wrong := make([]any, 5000)
	if got := compile(t, `{"items":{"type":"integer"}}`).Validate(wrong); len(got) != 1001 {
		t.Errorf("got %d problems, want 1000 and a note", len(got))
	}
}

// Each level of forms once repeated the messages of all levels below.
func TestMessagesOfNestedFormsStayShort(t *testing.T) {
	t.Parallel()
	schema := `{"required":["leaf"]}`
	for range 12 {
		schema = `{"anyOf":[` + schema + `,` + schema + `]}`
	}
	got := compile(t, schema).Validate(map[string]any{})
	if len(got) != 1 || len(got[0].Message) > 500 {
		t.Errorf("got %d problems, the first of %d bytes", len(got), len(got[0].Message))
	}
}

// A map's order must not decide what a message shows.
func TestLargeValuesAreNotWrittenOut(t *testing.T) {
	t.Parallel()
	large := map[string]any{"a": strings.Repeat("x", 10_000), "b": int64(1)}
	got := lines(compile(t, `{"const":1}`).Validate(large))
	if diff := cmp.Diff([]string{": must be 1, got an object"}, got); diff != "" {
		t.Error(diff)
	}
}

func itoa(i int) string { return string(rune('0'+i/10)) + string(rune('0'+i%10)) }

func FuzzCompileAndValidate(f *testing.F) {
	f.Add(`{"$defs":{"a":{"$ref":"#"}},"properties":{"x":{"$ref":"#/$defs/a"}},"unevaluatedProperties":false}`, `{"x":{"x":1}}`)
	f.Add(`{"$id":"urn:a","$dynamicAnchor":"n","items":{"$dynamicRef":"#n"},"oneOf":[{"if":true,"then":false},{"contains":{}}]}`, `[[1.5],"a"]`)
	f.Add(`{"type":["null","integer"],"multipleOf":0.1,"enum":[1,null],"dependencies":{"a":["b"]}}`, `3.0`)
	f.Fuzz(func(t *testing.T, schema, text string) {
		rawSchema, err := value.Decode([]byte(schema))
		if err != nil {
			return
		}
		v, err := value.Decode([]byte(text))
		if err != nil {
			return
		}
		s, err := jsonschema.Compile(rawSchema)
		if err != nil {
			return
		}
		if diff := cmp.Diff(s.Validate(v), s.Validate(v)); diff != "" {
			t.Errorf("two checks differ:\n%s", diff)
		}
	})
}

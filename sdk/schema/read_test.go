package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ptr[T any](v T) *T { return &v }

func TestReadAnyFormOfJSON(t *testing.T) {
	t.Parallel()
	const text = "\r\n{ \"type\" : [\"object\",\t\"null\"] , \"title\":\"a \\\"b\\\\\" ,\"description\":\"\\u00e9\\ud83d\\ude00 }],{\",\n" +
		`"properties":{"z":{"type":"integer","minimum":-1e2,"default":5,"x-unknown":{"a":[1,"]}"]}},"a\"b":{},"n":true,"no":false},` +
		`"required":["z"],"additionalProperties":false,"items":null,"anyOf":[{"type":"string","enum":["a",1,null,{"k":[]}]},true],` +
		`"default":{"k":[1,2.0,null]},"maxLength":3,"minItems":0,"$ref":"x","pattern":"^\\d$","format":"date"}` + " \n"
	want := &Schema{
		Type: Types{"object", "null"}, Title: `a "b\`, Description: "\u00e9\U0001F600 }],{",
		Properties: &Properties{
			{Name: "z", Schema: &Schema{Type: Types{"integer"}, Minimum: ptr(-100.0), Default: int64(5), Extra: map[string]any{"x-unknown": map[string]any{"a": []any{int64(1), "]}"}}}}},
			{Name: `a"b`, Schema: &Schema{}},
			{Name: "n", Schema: &Schema{}},
			{Name: "no", Schema: &Schema{Never: true}},
		},
		Required: []string{"z"}, AdditionalProperties: &Schema{Never: true},
		AnyOf:   []*Schema{{Type: Types{"string"}, Enum: []any{"a", int64(1), nil, map[string]any{"k": []any{}}}}, {}},
		Default: map[string]any{"k": []any{int64(1), 2.0, nil}}, MaxLength: ptr(3), MinItems: ptr(0), Pattern: `^\d$`, Format: "date",
		Extra: map[string]any{"$ref": "x"},
	}
	got := new(Schema)
	if err := json.Unmarshal([]byte(text), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`5`:                                  "expected a schema (an object",
		`{"properties":[]}`:                  "properties: expected an object",
		`{"properties":{"a":{"items":"x"}}}`: "properties: a: items: expected a schema (an object",
		`{"type":5}`:                         "type: ",
		`{"enum":{}}`:                        "enum: expected a list, got {}",
		`{"anyOf":{}}`:                       "anyOf: expected a list, got {}",
		`{"required":["a",5]}`:               "required: ",
		`{"minimum":"1"}`:                    "minimum: ",
		`{"title":{}}`:                       "title: ",
		`{"a":`:                              "unexpected end",
	} {
		if err := json.Unmarshal([]byte(text), new(Schema)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
		if err := new(Schema).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

// What can be read at all is the same when it is written and read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"type":["object"],"properties":{"a":{"default":1e400,"enum":["\ud800",""]}},"anyOf":[true,false,{}]}`, `{"items":{"items":{"items":{}}}}`,
		`true`, `null`, "{\"title\":\"\xff\"}", `{"minimum":1e999}`, `{ }`, `[]`, `{"properties":{"":{"":{}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first := new(Schema)
		if err := first.UnmarshalJSON(data); err != nil {
			return
		}
		text, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		again := new(Schema)
		if err := json.Unmarshal(text, again); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		second, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(second)); diff != "" {
			t.Error(diff)
		}
	})
}

// What a plugin in another language asks for is kept, or refused; nothing is
// dropped.
func TestOtherKeywordsAreKeptOrRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type":"object","properties":{"a":{"oneOf":[{"const":1},{"multipleOf":3}]}},"$defs":{"x":{}},"minProperties":1}`: "",
		`{"items":[{"type":"string"}],"$schema":"http://json-schema.org/draft-07/schema#"}`:                                "",
		`{"x-unit":"m","title":"t"}`:                             "",
		`{"properties":{"a":{"minimun":1}}}`:                     `properties: a: minimun: schema: the keyword "minimun" is not supported; did you mean "minimum"?`,
		`{"allOf":[{"properties":{"a":{"unevaluated":false}}}]}`: `allOf: schema at allOf[0].properties.a: the keyword "unevaluated" is not supported`,
	} {
		var s Schema
		if err := json.Unmarshal([]byte(text), &s); err != nil || want != "" {
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
			continue
		}
		raw, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		var got, given any
		if json.Unmarshal(raw, &got) != nil || json.Unmarshal([]byte(text), &given) != nil || !cmp.Equal(given, got) {
			t.Errorf("%s became %s", text, raw)
		}
	}
}

package schema_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/schema"
)

type base struct {
	ID   string `json:"id" doc:"from base"`
	Name string `json:"name"`
}

type Extra struct {
	More *int `json:"more,omitempty"`
}

type tree struct {
	Name     string  `json:"name"`
	Children []*tree `json:"children,omitempty"`
}

type level string

func (level) JSONSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"string"}, Enum: []any{"low", "high"}}
}

// size has its schema on the pointer, and one schema for all its fields.
type size int

var sizeSchema = schema.Schema{Type: schema.Types{"integer", "string"}}

func (*size) JSONSchema() *schema.Schema { return &sizeSchema }

type everything struct {
	base
	*Extra
	Name    int               `json:"name" doc:"hides base's"`
	Count   int               `json:"count,omitempty" default:"3" minimum:"0" maximum:"9"`
	Mode    string            `json:"mode" default:"fast" enum:"fast,slow"`
	Text    string            `json:"text" minLength:"1" maxLength:"80" pattern:"^a" format:"uri"`
	Tags    []string          `json:"tags,omitzero" minItems:"1"`
	Sizes   []int             `json:"sizes,omitempty" default:"[1,2]"`
	Headers map[string]string `json:"headers,omitempty"`
	Any     any               `json:"any"`
	Free    map[string]any    `json:"free"`
	Raw     json.RawMessage   `json:"raw"`
	Number  json.Number       `json:"number"`
	When    time.Time         `json:"when"`
	Address netip.Addr        `json:"address"`
	Bytes   []byte            `json:"bytes"`
	Array   [2]byte           `json:"array"`
	Level   level             `json:"level"`
	Tree    tree              `json:"tree"`
	Dash    bool              `json:"-,"` //nolint:staticcheck // the odd name is what is tested
	Untaged float64
	Hidden  string `json:"-"`
	private string
}

func TestOf(t *testing.T) {
	t.Parallel()
	_ = everything{private: ""}
	raw, err := json.MarshalIndent(schema.Of[everything](), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	err = json.Unmarshal([]byte(`{"type": "object", "additionalProperties": false,
		"required": ["id", "name", "text", "any", "free", "raw", "number", "when", "address", "bytes", "array", "level", "tree", "-", "Untaged"],
		"properties": {
			"id": {"type": "string", "description": "from base"},
			"more": {"type": "integer"},
			"name": {"type": "integer", "description": "hides base's"},
			"count": {"type": "integer", "default": 3, "minimum": 0, "maximum": 9},
			"mode": {"type": "string", "default": "fast", "enum": ["fast", "slow"]},
			"text": {"type": "string", "minLength": 1, "maxLength": 80, "pattern": "^a", "format": "uri"},
			"tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
			"sizes": {"type": "array", "items": {"type": "integer"}, "default": [1, 2]},
			"headers": {"type": "object", "additionalProperties": {"type": "string"}},
			"any": {}, "free": {"type": "object"}, "raw": {},
			"number": {"type": "number"},
			"when": {"type": "string", "format": "date-time"},
			"address": {"type": "string"},
			"bytes": {"type": "string", "format": "byte"},
			"array": {"type": "array", "items": {"type": "integer"}},
			"level": {"type": "string", "enum": ["low", "high"]},
			"tree": {"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
				"name": {"type": "string"}, "children": {"type": "array", "items": {"type": "object"}}}},
			"-": {"type": "boolean"},
			"Untaged": {"type": "number"}}}`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSchemaSurvivesARoundTripInOrder(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(schema.Of[everything]())
	if err != nil {
		t.Fatal(err)
	}
	var back schema.Schema
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&back)
	if err != nil || string(again) != string(raw) {
		t.Errorf("%v\n%s\n%s", err, raw, again)
	}
	if names := back.Properties.Names(); names[0] != "id" || back.Properties.Get("id") == nil || back.Properties.Get("nothing") != nil {
		t.Errorf("names = %v", names)
	}
}

// A tag that is malformed fails where the bundle is built.
func TestMalformedTagsPanic(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		field any
		want  string
	}{
		{struct {
			F string `pattern:"(["`
		}{}, "pattern: "},
		{struct {
			F string `minimum:"1"`
		}{}, "for numbers"},
		{struct {
			F int `maxLength:"1"`
		}{}, "for strings"},
		{struct {
			F int `pattern:"a"`
		}{}, "for strings"},
		{struct {
			F string `minItems:"1"`
		}{}, "for lists"},
		{struct {
			F int `minimum:"x"`
		}{}, "tag minimum"},
		{struct {
			F int `minimum:"2" maximum:"1"`
		}{}, "minimum is above maximum"},
		{struct {
			F int `maximum:"9" default:"10"`
		}{}, "default 10 is above maximum"},
		{struct {
			F int `default:"1.5"`
		}{}, "default 1.5 is not of type integer"},
		{struct {
			F bool `default:"1"`
		}{}, "default 1 is not of type boolean"},
		{struct {
			F string `enum:"a,b" default:"c"`
		}{}, "default c is not in enum"},
		{struct {
			F string `pattern:"^a" default:"b"`
		}{}, "does not match pattern"},
		{struct {
			F int `enum:"1,x"`
		}{}, "not JSON"},
		{struct {
			F []int `default:"[1"`
		}{}, "not JSON"},
		{struct {
			F string `minLength:"1.5"`
		}{}, "tag minLength"},
		{struct {
			F []int `minItems:"1" default:"[]"`
		}{}, "default [] is shorter than minItems"},
		{reflect.New(reflect.StructOf([]reflect.StructField{{
			Name: "F", Type: reflect.TypeFor[string](), Tag: `json:"f" pattern:^a$`,
		}})).Elem().Interface(), `tag pattern:^a$ is not of the form key:"value"`},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, test.want) || !strings.Contains(got, "field F") {
					t.Errorf("%T: %s, want %q in it", test.field, got, test.want)
				}
			}()
			schema.OfType(reflect.TypeOf(test.field))
		}()
	}
}

func TestTypesWithoutJSONFormPanic(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	schema.Of[struct{ A chan int }]()
}

func ExampleOf() {
	type params struct {
		URL     string `json:"url" doc:"where to look"`
		Retries int    `json:"retries,omitempty" default:"2" minimum:"0"`
	}
	raw, _ := json.MarshalIndent(schema.Of[params](), "", "  ")
	fmt.Println(string(raw))
	// Output:
	// {
	//   "type": "object",
	//   "properties": {
	//     "url": {
	//       "type": "string",
	//       "description": "where to look"
	//     },
	//     "retries": {
	//       "type": "integer",
	//       "default": 2,
	//       "minimum": 0
	//     }
	//   },
	//   "required": [
	//     "url"
	//   ],
	//   "additionalProperties": false
	// }
}

func TestTypesThatDescribeThemselves(t *testing.T) {
	t.Parallel()
	type fields struct {
		Level  *level   `json:"level,omitempty" doc:"how much"`
		All    []*level `json:"all"`
		Width  size     `json:"width" doc:"to the right"`
		Height *size    `json:"height" doc:"up"`
		Depth  **size   `json:"depth"`
	}
	got, err := json.Marshal(schema.Of[fields]())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{` +
		`"level":{"type":"string","description":"how much","enum":["low","high"]},` +
		`"all":{"type":"array","items":{"type":"string","enum":["low","high"]}},` +
		`"width":{"type":["integer","string"],"description":"to the right"},` +
		`"height":{"type":["integer","string"],"description":"up"},` +
		`"depth":{"type":["integer","string"]}},` +
		`"required":["all","width","height","depth"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestRelationsOfMembers(t *testing.T) {
	t.Parallel()
	type rule struct {
		Min  float64  `json:"min,omitempty" atMost:"max"`
		Max  float64  `json:"max,omitempty"`
		To   []string `json:"to,omitempty" keyOf:"/targets"`
		Text string   `json:"text,omitempty" keyOf:"params" keyPattern:"<(.+)>"`
	}
	raw, err := json.Marshal(schema.With[rule](`{"dependentRequired": {"min": ["max"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{"min":{"type":"number","x-tea-atMost":"max"},"max":{"type":"number"},` +
		`"to":{"type":"array","items":{"type":"string","x-tea-keyOf":"/targets"}},` +
		`"text":{"type":"string","x-tea-keyOf":"params","x-tea-keyPattern":"<(.+)>"}},` +
		`"additionalProperties":false,"dependentRequired":{"min":["max"]}}`
	if diff := cmp.Diff(want, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(raw))); diff != "" {
		t.Error(diff)
	}
}

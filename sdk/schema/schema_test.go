package schema_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
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

func TestMalformedTagsPanic(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(){
		"default": func() {
			schema.Of[struct {
				A int `json:"a" default:"x"`
			}]()
		},
		"minimum": func() {
			schema.Of[struct {
				A int `json:"a" minimum:"x"`
			}]()
		},
		"minLength": func() {
			schema.Of[struct {
				A string `json:"a" minLength:"1.5"`
			}]()
		},
		"no JSON form": func() { schema.Of[struct{ A chan int }]() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			of()
		})
	}
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

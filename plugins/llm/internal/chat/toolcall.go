package chat

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// ToolCall is a model's request to call a tool.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is the JSON text from the model: usually an object, but models also
	// write invalid JSON.
	Arguments string
	// Extra are members that the protocol does not define, such as a thought
	// signature; see [Message].
	Extra map[string]any
}

// Object parses the arguments. Missing arguments are an empty object.
func (c ToolCall) Object() (map[string]any, error) {
	text := bytes.TrimSpace([]byte(c.Arguments))
	if len(text) == 0 || string(text) == "null" {
		return map[string]any{}, nil
	}
	v, err := value.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	if inner, ok := v.(string); ok { // encoded twice
		return ToolCall{Arguments: inner}.Object()
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the arguments must be a JSON object, not %s", value.TypeName(v))
	}
	return object, nil
}

// JSONSchema describes the forms that UnmarshalJSON reads.
func (ToolCall) JSONSchema() *schema.Schema {
	text := &schema.Schema{Type: schema.Types{"string"}}
	return &schema.Schema{Type: schema.Types{"object"}, Properties: &schema.Properties{
		{Name: "id", Schema: text},
		{Name: "name", Schema: text},
		{Name: "arguments", Schema: &schema.Schema{Description: "an object; a string if the model wrote no valid JSON object"}},
	}}
}

// MarshalJSON writes the arguments as an object if they are one, otherwise as the
// model's text, and the extra members.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	for name, extra := range c.Extra {
		out[name] = extra
	}
	out["id"], out["name"], out["arguments"] = c.ID, c.Name, c.Arguments
	if object, err := c.Object(); err == nil {
		out["arguments"] = object
	}
	return value.Encode(out)
}

// UnmarshalJSON reads {id, name, arguments} and OpenAI's {id, function: {name,
// arguments}}, with the arguments as an object or as text. It keeps unknown members
// in Extra, those of the function under "function".
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	var in struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Function  json.RawMessage `json:"function"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	extra, err := Unknown(data, "id", "name", "arguments", "type", "index", "function")
	if err != nil {
		return err
	}
	if len(in.Function) > 0 && string(in.Function) != "null" {
		if in.Name == "" {
			if err := json.Unmarshal(in.Function, &in); err != nil {
				return err
			}
		}
		inner, err := Unknown(in.Function, "name", "arguments", "index")
		if err != nil {
			return err
		}
		extra = WithFunction(extra, inner)
	}
	*c = ToolCall{ID: in.ID, Name: in.Name, Arguments: ArgumentsText(in.Arguments), Extra: extra}
	return nil
}

// WithFunction adds the unknown members of a call's function to those of the call. It
// returns nil if there are none.
func WithFunction(call, function map[string]any) map[string]any {
	if len(function) == 0 {
		return call
	}
	if call == nil {
		call = map[string]any{}
	}
	call["function"] = function
	return call
}

// ArgumentsText returns the text of arguments that a server sent as a JSON string or
// value; "" for null and empty text.
func ArgumentsText(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return text
	}
	return string(raw)
}

package llm

import (
	"encoding/json"

	"github.com/the-edge-agent/tea/sdk/schema"
)

// ToolSpec is a tool as a workflow writes it: an action's name, an object
// {name, description, parameters, action}, or OpenAI's {function: {...}}.
type ToolSpec struct {
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments; nil takes the action's.
	Parameters map[string]any
	// Action is what llm.tools calls; by default the action called Name.
	Action string
}

// JSONSchema describes the forms that UnmarshalJSON reads.
func (ToolSpec) JSONSchema() *schema.Schema {
	text := &schema.Schema{Type: schema.Types{"string"}}
	return &schema.Schema{AnyOf: []*schema.Schema{text, {
		Type: schema.Types{"object"},
		Properties: &schema.Properties{
			{Name: "name", Schema: text},
			{Name: "description", Schema: text},
			{Name: "parameters", Schema: &schema.Schema{Type: schema.Types{"object"}}},
			{Name: "action", Schema: text},
			{Name: "type", Schema: text},
			{Name: "function", Schema: &schema.Schema{Type: schema.Types{"object"}}},
		},
		AdditionalProperties: &schema.Schema{Never: true},
	}}}
}

// UnmarshalJSON reads the three forms.
func (t *ToolSpec) UnmarshalJSON(data []byte) error {
	type fields struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters"`
	}
	var in struct {
		fields
		Action   string  `json:"action"`
		Function *fields `json:"function"`
	}
	if json.Unmarshal(data, &in.Name) != nil {
		if err := json.Unmarshal(data, &in); err != nil {
			return err
		}
	}
	if in.Function != nil {
		in.fields = *in.Function
	}
	*t = ToolSpec{Name: in.Name, Description: in.Description, Parameters: in.Parameters, Action: in.Action}
	if t.Action == "" {
		t.Action = t.Name
	}
	if t.Name == "" {
		t.Name = t.Action
	}
	return nil
}

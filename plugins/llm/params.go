package llm

import (
	"cmp"
	"encoding/json"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Ask are the parameters that all requests to a model share.
type Ask struct {
	Connection
	Fallbacks      []Fallback     `json:"fallbacks,omitempty" doc:"models or servers to ask in turn when a request fails; default: settings.llm.fallbacks, [] = none"`
	Prompt         string         `json:"prompt,omitempty" doc:"the question; follows messages"`
	System         string         `json:"system,omitempty" doc:"instructions; precede messages"`
	Messages       []chat.Message `json:"messages,omitempty" doc:"the conversation so far"`
	Temperature    *float64       `json:"temperature,omitempty" minimum:"0" doc:"0 = always the most likely token"`
	TopP           *float64       `json:"top_p,omitempty" minimum:"0" maximum:"1" doc:"share of the most likely tokens to choose from"`
	MaxTokens      int            `json:"max_tokens,omitempty" minimum:"1" doc:"limit for the answer's length"`
	Stop           Texts          `json:"stop,omitempty" doc:"texts that end the answer"`
	Seed           *int64         `json:"seed,omitempty" doc:"the same seed leads to the same answer, where the server supports it"`
	Schema         map[string]any `json:"schema,omitempty" doc:"JSON Schema; the answer is parsed, checked against it and returned as data"`
	ResponseFormat ResponseFormat `json:"response_format,omitzero" doc:"text, json (any JSON, returned as data), or an object as in OpenAI's API"`
	MaxRepairs     int            `json:"max_repairs,omitempty" default:"2" minimum:"0" doc:"how often the model is asked to correct an answer that does not match the schema"`
	Tools          []ToolSpec     `json:"tools,omitempty" doc:"names of actions, or objects {name, description, parameters, action, approval}; mcp.SERVER.* is all tools of an MCP server"`
	ToolChoice     string         `json:"tool_choice,omitempty" doc:"auto, none, required, or the name of a tool"`
}

// CallParams are the parameters of llm.call.
type CallParams struct {
	Ask
	Stream bool `json:"stream,omitempty" doc:"emit tokens as they arrive"`
}

// StreamParams are the parameters of llm.stream.
type StreamParams struct{ Ask }

// request returns the provider's request. The caller adds the tools.
func (a *Ask) request(action string, settings *Settings) (*chat.Request, error) {
	messages := make([]chat.Message, 0, len(a.Messages)+2)
	if a.System != "" {
		messages = append(messages, chat.Text("system", a.System))
	}
	for i, m := range a.Messages {
		switch m.Role {
		case "system", "developer", "user", "assistant", "tool":
			messages = append(messages, m)
		default:
			return nil, tea.Errorf(tea.ValidationError, "messages[%d].role is %q; use system, developer, user, assistant or tool", i, m.Role)
		}
	}
	if a.Prompt != "" {
		messages = append(messages, chat.Text("user", a.Prompt))
	}
	if a.Prompt == "" && len(a.Messages) == 0 {
		return nil, tea.Errorf(tea.ValidationError, "%s needs a prompt or messages", action)
	}
	format := a.ResponseFormat.format
	if a.Schema != nil {
		format = &chat.Format{Schema: a.Schema}
	}
	return &chat.Request{
		Messages: messages, Temperature: cmp.Or(a.Temperature, settings.Temperature), TopP: a.TopP,
		MaxTokens: cmp.Or(a.MaxTokens, settings.MaxTokens), Stop: a.Stop, Seed: a.Seed,
		Format: format, ToolChoice: a.ToolChoice,
	}, nil
}

// Texts is a list of strings. In JSON it may be a single string.
type Texts []string

// JSONSchema describes both forms.
func (Texts) JSONSchema() *schema.Schema {
	text := &schema.Schema{Type: schema.Types{"string"}}
	return &schema.Schema{AnyOf: []*schema.Schema{text, {Type: schema.Types{"array"}, Items: text}}}
}

// UnmarshalJSON reads both forms.
func (t *Texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = Texts{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// ResponseFormat is the format of the answer: "text", "json", or an object as in
// OpenAI's API.
type ResponseFormat struct{ format *chat.Format }

// JSONSchema describes the forms that UnmarshalJSON reads.
func (ResponseFormat) JSONSchema() *schema.Schema {
	return &schema.Schema{AnyOf: []*schema.Schema{
		{Type: schema.Types{"string"}, Enum: []any{"text", "json", "json_object"}},
		{Type: schema.Types{"object"}},
	}}
}

// UnmarshalJSON reads a name or an object.
func (f *ResponseFormat) UnmarshalJSON(data []byte) error {
	var object struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema map[string]any `json:"schema"`
		} `json:"json_schema"`
	}
	if json.Unmarshal(data, &object.Type) != nil {
		if err := json.Unmarshal(data, &object); err != nil {
			return err
		}
	}
	switch object.Type {
	case "text", "":
		f.format = nil
	case "json", "json_object", "json_schema":
		f.format = &chat.Format{Schema: object.JSONSchema.Schema}
	default:
		return tea.Errorf(tea.ValidationError, "unknown response_format %q; use text, json or an object with a json_schema", object.Type)
	}
	return nil
}

// ToolSpec is a tool in a workflow: an action's name, an object
// {name, description, parameters, action}, or OpenAI's {function: {...}}.
type ToolSpec struct {
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments; nil means the action's.
	Parameters map[string]any
	// Action is the action that llm.tools calls; by default the action called Name.
	// NAMESPACE.SERVER.* means all tools of a server.
	Action string
	// Approval is auto, ask or deny; see approval.go.
	Approval string
}

// JSONSchema describes the forms that UnmarshalJSON reads.
func (ToolSpec) JSONSchema() *schema.Schema {
	text := &schema.Schema{Type: schema.Types{"string"}}
	return &schema.Schema{AnyOf: []*schema.Schema{text, {
		Type: schema.Types{"object"},
		Properties: &schema.Properties{
			{Name: "name", Schema: text},
			{Name: "description", Schema: text},
			{Name: "parameters", Schema: argumentsSchema()},
			{Name: "action", Schema: text},
			{Name: "approval", Schema: &schema.Schema{Type: schema.Types{"string"}, Enum: []any{approveAuto, approveAsk, approveDeny}}},
			{Name: "type", Schema: text},
			{Name: "function", Schema: &schema.Schema{Type: schema.Types{"object"}, Properties: &schema.Properties{{Name: "parameters", Schema: argumentsSchema()}}}},
		},
		AdditionalProperties: &schema.Schema{Never: true},
	}}}
}

// argumentsSchema describes the JSON Schema of a tool's arguments: an object with the
// keywords of JSON Schema and OpenAPI. It allows no other members, such as a fixed
// argument, because the model would get them without effect.
func argumentsSchema() *schema.Schema {
	properties := schema.Properties{
		{Name: "type", Schema: &schema.Schema{Enum: []any{"object"}}},
		{Name: "properties", Schema: &schema.Schema{Type: schema.Types{"object"}, AdditionalProperties: &schema.Schema{Type: schema.Types{"object", "boolean"}}}},
		{Name: "required", Schema: &schema.Schema{Type: schema.Types{"array"}, Items: &schema.Schema{Type: schema.Types{"string"}}}},
	}
	for _, keyword := range []string{
		"additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies",
		"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "default", "example", "examples", "nullable", "strict",
		"title", "description", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$anchor", "$ref", "$dynamicRef", "$dynamicAnchor", "$defs", "definitions", "$comment",
	} {
		properties = append(properties, schema.Property{Name: keyword, Schema: &schema.Schema{}})
	}
	return &schema.Schema{
		Type: schema.Types{"object"}, Description: "JSON Schema of the arguments: {type: object, properties: {...}}; default: the action's",
		Properties: &properties, AdditionalProperties: &schema.Schema{Never: true}, Extra: map[string]any{"patternProperties": map[string]any{"^x-": map[string]any{}}},
	}
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
		Approval string  `json:"approval"`
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
	*t = ToolSpec{Name: in.Name, Description: in.Description, Parameters: in.Parameters, Action: in.Action, Approval: in.Approval}
	if t.Action == "" {
		t.Action = t.Name
	}
	if t.Name == "" {
		t.Name = t.Action
	}
	return nil
}

package chat

// Request asks a model for one answer. The server chooses the values of fields that are
// nil or empty.
type Request struct {
	Model       string    `json:"model"`
	Messages    []Message `json:"messages"`
	Temperature *float64  `json:"temperature,omitempty"`
	TopP        *float64  `json:"top_p,omitempty"`
	MaxTokens   int       `json:"max_tokens,omitempty"`
	Stop        []string  `json:"stop,omitempty"`
	Seed        *int64    `json:"seed,omitempty"`
	Format      *Format   `json:"format,omitempty"`
	Tools       []Tool    `json:"tools,omitempty"`
	// ToolChoice is "auto", "none", "required", the name of a tool, or "".
	ToolChoice string `json:"tool_choice,omitempty"`
	// Extra is merged into the body of the request, see [Merge].
	Extra map[string]any `json:"extra,omitempty"`
}

// Format asks for JSON. A nil Schema accepts any JSON object.
type Format struct {
	Schema map[string]any `json:"schema,omitempty"`
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is the JSON Schema of the arguments.
	Parameters any `json:"parameters"`
}

// Merge merges extra into body: objects member by member; null removes a member; any
// other value replaces the one in body. It modifies only body.
func Merge(body, extra map[string]any) {
	for key, v := range extra {
		if v == nil {
			delete(body, key)
			continue
		}
		over, ok := v.(map[string]any)
		under, both := body[key].(map[string]any)
		if ok && both {
			Merge(under, over)
			continue
		}
		body[key] = v
	}
}

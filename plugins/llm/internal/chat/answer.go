package chat

// Reasons why an answer ended, as they are reported whatever the server
// called them. Others are passed on as the server wrote them.
const (
	FinishStop      = "stop"
	FinishLength    = "length"
	FinishToolCalls = "tool_calls"
	// FinishUnknown is the end of a stream that was whole but did not say so.
	FinishUnknown = "unknown"
)

// Answer is what a model said.
type Answer struct {
	// Model is the name that the server gave, "" where it gave none.
	Model        string     `json:"model,omitempty"`
	Text         string     `json:"text,omitempty"`
	Reasoning    string     `json:"reasoning,omitempty"`
	ToolCalls    []ToolCall `json:"tool_calls,omitempty"`
	FinishReason string     `json:"finish_reason,omitempty"`
	// Usage is nil where the server did not count.
	Usage *Usage `json:"usage,omitempty"`
}

// Finish sets the reason why the answer ended: what the server said, made
// consistent with what the answer holds.
func (a *Answer) Finish(reason string) {
	switch {
	case len(a.ToolCalls) > 0 && (reason == "" || reason == FinishStop || reason == FinishUnknown || reason == "function_call"):
		reason = FinishToolCalls
	case reason == "":
		reason = FinishStop
	}
	a.FinishReason = reason
}

// Usage counts tokens.
type Usage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	TotalTokens  int `json:"total_tokens"`
	// Estimated says that the server did not count and the numbers come from
	// the length of the texts.
	Estimated bool `json:"estimated"`
}

// Add counts other too.
func (u *Usage) Add(other Usage) {
	u.InputTokens += other.InputTokens
	u.OutputTokens += other.OutputTokens
	u.TotalTokens += other.TotalTokens
	u.Estimated = u.Estimated || other.Estimated
}

// bytesPerToken is a rule of thumb for the tokenizers in use; it serves where
// a server does not count.
const bytesPerToken = 4

// EstimateTokens guesses how many tokens a text has.
func EstimateTokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

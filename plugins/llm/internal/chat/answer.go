package chat

// Normalized reasons for the end of an answer. Other reasons are passed on as the
// server wrote them.
const (
	FinishStop      = "stop"
	FinishLength    = "length"
	FinishToolCalls = "tool_calls"
	// FinishFilter is the end of an answer that a content filter withheld.
	FinishFilter = "content_filter"
	// FinishRefusal is the end of an answer in which the model declines.
	FinishRefusal = "refusal"
	// FinishUnknown is the end of a complete stream without a reason.
	FinishUnknown = "unknown"
)

// finishWords maps the reasons of servers to these.
var finishWords = map[string]string{
	"max_tokens": FinishLength, "MAX_TOKENS": FinishLength, "model_length": FinishLength, "max_output_tokens": FinishLength, "model_context_window_exceeded": FinishLength,
	"SAFETY": FinishFilter, "safety": FinishFilter, "RECITATION": FinishFilter, "PROHIBITED_CONTENT": FinishFilter, "BLOCKLIST": FinishFilter, "SPII": FinishFilter,
	"STOP": FinishStop, "end_turn": FinishStop, "eos": FinishStop, "eos_token": FinishStop, "stop_sequence": FinishStop,
	"tool_use": FinishToolCalls, "function_call": FinishToolCalls,
}

// Answer is the answer of a model.
type Answer struct {
	// Model is the name that the server reported; "" if none.
	Model        string     `json:"model,omitempty"`
	Text         string     `json:"text,omitempty"`
	Reasoning    string     `json:"reasoning,omitempty"`
	ToolCalls    []ToolCall `json:"tool_calls,omitempty"`
	FinishReason string     `json:"finish_reason,omitempty"`
	// Usage is nil if the server did not count.
	Usage *Usage `json:"usage,omitempty"`
	// Extra are members of the turn to send back to the server, see [Message].
	Extra map[string]any `json:"extra,omitempty"`
	// NotSent are the parameters of the request that the protocol does not have.
	NotSent []string `json:"not_sent,omitempty"`
}

// Finish sets the reason for the end of the answer: the server's reason, made
// consistent with the answer's contents.
func (a *Answer) Finish(reason string) {
	if word, ok := finishWords[reason]; ok {
		reason = word
	}
	switch {
	case len(a.ToolCalls) > 0 && (reason == "" || reason == FinishStop || reason == FinishUnknown):
		reason = FinishToolCalls
	case reason == "":
		reason = FinishStop
	}
	a.FinishReason = reason
}

// Message returns the answer as a turn of the conversation.
func (a *Answer) Message() Message {
	m := Text("assistant", a.Text)
	m.ToolCalls, m.Extra = a.ToolCalls, a.Extra
	return m
}

// Usage counts tokens.
type Usage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	TotalTokens  int `json:"total_tokens"`
	// CachedTokens are the input tokens that the server had cached.
	CachedTokens int `json:"cached_tokens,omitempty" doc:"tokens of the input that the server read from its cache"`
	// CacheWriteTokens are the input tokens that the server wrote to its cache, and
	// CacheWriteLongTokens those of them that it keeps for an hour.
	CacheWriteTokens     int `json:"cache_write_tokens,omitempty" doc:"tokens of the input that the server wrote to its cache"`
	CacheWriteLongTokens int `json:"cache_write_long_tokens,omitempty" doc:"the part of cache_write_tokens that the server keeps for an hour"`
	// ReasoningTokens are the output tokens that are not in the answer.
	ReasoningTokens int `json:"reasoning_tokens,omitempty" doc:"tokens of the output that the model used to think"`
	// Estimated reports whether the server did not count, and that the numbers are
	// derived from the length of the texts.
	Estimated bool `json:"estimated"`
}

// Add adds the counts of other.
func (u *Usage) Add(other Usage) {
	u.InputTokens += other.InputTokens
	u.OutputTokens += other.OutputTokens
	u.TotalTokens += other.TotalTokens
	u.CachedTokens += other.CachedTokens
	u.CacheWriteTokens += other.CacheWriteTokens
	u.CacheWriteLongTokens += other.CacheWriteLongTokens
	u.ReasoningTokens += other.ReasoningTokens
	u.Estimated = u.Estimated || other.Estimated
}

// Normalize makes a server's counts consistent: none is negative, parts do not exceed
// the whole, and the part of the total that is neither input nor output counts as
// output, because some servers omit reasoning tokens from it.
func (u Usage) Normalize() Usage {
	const most = 1 << 29 // a larger count is a server's mistake, and could make sums overflow
	bound := func(n, limit int) int { return max(0, min(n, limit)) }
	u.InputTokens, u.OutputTokens = bound(u.InputTokens, most), bound(u.OutputTokens, most)
	if hidden := bound(u.TotalTokens, 2*most) - u.InputTokens - u.OutputTokens; hidden > 0 {
		u.OutputTokens += hidden
		u.ReasoningTokens = max(u.ReasoningTokens, hidden)
	}
	u.TotalTokens = u.InputTokens + u.OutputTokens
	u.CacheWriteTokens = bound(u.CacheWriteTokens, u.InputTokens-bound(u.CachedTokens, u.InputTokens))
	u.CacheWriteLongTokens = bound(u.CacheWriteLongTokens, u.CacheWriteTokens)
	u.CachedTokens, u.ReasoningTokens = bound(u.CachedTokens, u.InputTokens), bound(u.ReasoningTokens, u.OutputTokens)
	return u
}

// bytesPerToken is a rule of thumb for common tokenizers, used if a server does not
// count.
const bytesPerToken = 4

// EstimateTokens estimates the number of tokens of a text.
func EstimateTokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// EstimateUsage estimates the tokens of a request and of its answer so far.
func EstimateUsage(req *Request, said int) *Usage {
	asked := 0
	for _, m := range req.Messages {
		asked += len(m.Content.Text()) + SizeOfCalls(m.ToolCalls)
	}
	u := &Usage{InputTokens: (asked + bytesPerToken - 1) / bytesPerToken, OutputTokens: (said + bytesPerToken - 1) / bytesPerToken, Estimated: true}
	u.TotalTokens = u.InputTokens + u.OutputTokens
	return u
}

// SizeOfCalls is the length of the names and arguments of tool calls.
func SizeOfCalls(calls []ToolCall) (size int) {
	for _, c := range calls {
		size += len(c.Name) + len(c.Arguments)
	}
	return size
}

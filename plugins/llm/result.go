package llm

import (
	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// Error types of answers that ended early. They are also the finish_reason of such an
// answer if its text is returned as a result.
const (
	// Refusal reports that the model declined to answer.
	Refusal tea.ErrorType = chat.FinishRefusal
	// Length reports that the answer was cut off at max_tokens or at the model's
	// limit.
	Length tea.ErrorType = chat.FinishLength
	// ContentFilter reports that a content filter withheld the answer or refused
	// the request.
	ContentFilter tea.ErrorType = httpapi.ContentFiltered
)

// Result is a model's answer.
type Result struct {
	Success      bool            `json:"success"`
	Content      string          `json:"content" doc:"the answer's text"`
	Data         any             `json:"data,omitempty" doc:"the parsed answer, where a schema or JSON was asked for"`
	Reasoning    string          `json:"reasoning,omitempty" doc:"what the model thought before it answered: what the server reports, or a <think> block at the beginning of the answer"`
	Message      chat.Message    `json:"message" doc:"the answer as a message for the next request, with the members that the server added"`
	ToolCalls    []chat.ToolCall `json:"tool_calls" doc:"calls of tools that the model asked for"`
	FinishReason string          `json:"finish_reason" doc:"stop, length, tool_calls, content_filter, refusal, max_tool_rounds, unknown, or the server's own word"`
	Model        string          `json:"model"`
	Provider     string          `json:"provider"`
	Usage        chat.Usage      `json:"usage" doc:"tokens of all requests of this call"`
	CostUSD      *float64        `json:"cost_usd,omitempty" doc:"cost of the requests whose model has a price; absent where none has"`
	NotSent      []string        `json:"not_sent,omitempty" doc:"parameters that the protocol of the server does not have"`
	Repairs      int             `json:"repairs,omitempty" doc:"how often the model had to correct its answer"`
	LatencyMS    int64           `json:"latency_ms"`
	// TimeToFirstTokenMS counts from the start of the call.
	TimeToFirstTokenMS *int64 `json:"time_to_first_token_ms,omitempty" doc:"streams only"`
}

// outcome is the error of an answer that ended early; nil if it ended normally.
func outcome(answer *chat.Answer) *tea.Error {
	var e *tea.Error
	switch answer.FinishReason {
	case chat.FinishLength:
		e = tea.Errorf(Length, "the model's answer was cut off at its maximum length; raise max_tokens or ask for less")
	case chat.FinishFilter:
		e = tea.Errorf(ContentFilter, "a content filter withheld the model's answer")
	case chat.FinishRefusal:
		e = tea.Errorf(Refusal, "the model refused to answer: %s", plaintext.Cut(answer.Text, 200))
	default:
		return nil
	}
	e.Details = map[string]any{"content": answer.Text, "finish_reason": answer.FinishReason}
	return e
}

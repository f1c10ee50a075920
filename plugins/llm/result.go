package llm

import (
	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
)

// Result is a model's answer.
type Result struct {
	Success      bool            `json:"success"`
	Content      string          `json:"content" doc:"the answer's text"`
	Data         any             `json:"data,omitempty" doc:"the parsed answer, where a schema or JSON was asked for"`
	Reasoning    string          `json:"reasoning,omitempty" doc:"what the model thought before, where the server tells"`
	Message      chat.Message    `json:"message" doc:"the answer as a message, to go on with"`
	ToolCalls    []chat.ToolCall `json:"tool_calls" doc:"tools that the model wants to be run"`
	FinishReason string          `json:"finish_reason" doc:"stop, length, tool_calls, max_tool_rounds, unknown, or the server's own word"`
	Model        string          `json:"model"`
	Provider     string          `json:"provider"`
	Usage        chat.Usage      `json:"usage" doc:"tokens of all requests of this call"`
	CostUSD      *float64        `json:"cost_usd,omitempty" doc:"absent where settings.llm.prices does not know the model"`
	Repairs      int             `json:"repairs,omitempty" doc:"how often the model had to correct its answer"`
	LatencyMS    int64           `json:"latency_ms"`
	// TimeToFirstTokenMS counts from the start of the call.
	TimeToFirstTokenMS *int64 `json:"time_to_first_token_ms,omitempty" doc:"streams only"`
}

// cost prices tokens; nil where the model has no price.
func cost(prices map[string]Price, usage chat.Usage, models ...string) *float64 {
	for _, model := range models {
		if p, ok := prices[model]; ok {
			usd := (float64(usage.InputTokens)*p.Input + float64(usage.OutputTokens)*p.Output) / 1e6
			return &usd
		}
	}
	return nil
}

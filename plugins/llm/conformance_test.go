package llm_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/llm"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// The samples are calls that fail: answers hold times, which differ.
func TestConformance(t *testing.T) {
	t.Parallel()
	settings := map[string]any{"llm": map[string]any{"provider": "replay", "model": "m", "replay": map[string]any{"file": "testdata/none.jsonl"}}}
	teatest.Conformance(t, llm.Bundle(),
		teatest.Request{Action: "llm.call", Settings: settings, Params: map[string]any{"prompt": "hi"}},
		teatest.Request{Action: "llm.stream", Settings: settings, Params: map[string]any{"prompt": 7}},
		teatest.Request{Action: "llm.tools", Settings: settings, Params: map[string]any{"prompt": "hi", "tools": []any{"no.such"}}},
		teatest.Request{Action: "agent.run", Settings: settings, Params: map[string]any{"prompt": "hi", "agent": "nobody"}},
		teatest.Request{Action: "embedding.create", Settings: settings, Params: map[string]any{"input": "a"}},
	)
}

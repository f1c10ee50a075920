package llm

import (
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle is the set of actions, for serve.Main or to be linked into a host.
func Bundle() tea.Bundle {
	return tea.Bundle{
		Name:        "llm",
		Version:     "0.1.0",
		Description: "Asks language models: OpenAI-compatible servers, Ollama, Azure, and recordings of them.",
		Settings:    map[string]*schema.Schema{settingsKey: schema.Of[Settings]()},
		Open:        open,
		Actions: []tea.Action{
			tea.NewMethod("llm.call", "Asks a model and waits for its answer.", (*Client).Call, tea.Streaming(), tea.Idempotent()),
			tea.NewMethod("llm.stream", "Asks a model and passes its answer on token by token.", (*Client).Stream, tea.Streaming(), tea.Idempotent()),
			tea.NewMethod("llm.tools", "Lets a model use other actions as tools until it has an answer.", (*Client).Tools, tea.Streaming()),
			tea.NewMethod("embedding.create", "Turns texts into vectors.", (*Client).Embed, tea.Idempotent()),
		},
	}
}

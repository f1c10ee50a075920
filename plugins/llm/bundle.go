package llm

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle is the set of actions, for serve.Main or for linking into a host.
//
// llm.call, llm.stream and embedding.create are idempotent: their only effect is their
// cost, so a host may repeat a call that a crash of the plugin interrupted before its
// first token. llm.tools and agent.run are not, because their tools act. When the node is
// retried, they continue from what was recorded.
func Bundle() tea.Bundle {
	limits := new(slots) // shared by all settings, since they share the servers
	return tea.Bundle{
		Name:        "llm",
		Version:     "0.1.0",
		Description: "Asks language models: OpenAI and compatible servers, Anthropic, Gemini, Ollama, Azure, programs, and recordings of them.",
		Settings:    map[string]*schema.Schema{settingsKey: schema.Of[Settings]()},
		Open:        func(_ context.Context, s tea.Settings) (any, error) { return open(s, limits) },
		Actions: []tea.Action{
			tea.NewMethod("llm.call", "Asks a model and waits for its answer.", (*Client).Call, tea.Streaming(), tea.Idempotent(), tea.Reads(), asks),
			tea.NewMethod("llm.stream", "Asks a model and emits its answer token by token.", (*Client).Stream, tea.Streaming(), tea.Idempotent(), tea.Reads(), asks),
			tea.NewMethod("llm.tools", "Lets a model use other actions as tools until it has an answer.", (*Client).Tools, tea.Streaming(), tea.Reads(), asks),
			tea.NewMethod("agent.run", "Runs an agent: a model with instructions, tools, other agents and skills, until it has an answer.", (*Client).Agent, tea.Streaming(), tea.Reads(), asks),
			tea.NewMethod("embedding.create", "Turns texts into vectors.", (*Client).Embed, tea.Idempotent(), tea.Reads()),
		},
	}
}

// asks declares that an action may ask a question.
func asks(a *tea.Action) {
	a.Params.AnyOf = []*schema.Schema{{Required: []string{"prompt"}}, {Required: []string{"messages"}}}
}

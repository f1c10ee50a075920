package llm

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle is the set of actions, for serve.Main or to be linked into a host.
//
// llm.call, llm.stream and embedding.create are idempotent: they have no
// effect but their cost, so a host may repeat a call that a crash of the
// plugin cut off before its first token. llm.tools is not: its tools act. It
// continues from its notes when the node is retried.
func Bundle() tea.Bundle {
	limits := new(slots) // shared by all settings, since they share the servers
	return tea.Bundle{
		Name:        "llm",
		Version:     "0.1.0",
		Description: "Asks language models: OpenAI-compatible servers, Ollama, Azure, and recordings of them.",
		Settings:    map[string]*schema.Schema{settingsKey: schema.Of[Settings]()},
		Open:        func(_ context.Context, s tea.Settings) (any, error) { return open(s, limits) },
		Actions: []tea.Action{
			tea.NewMethod("llm.call", "Asks a model and waits for its answer.", (*Client).Call, tea.Streaming(), tea.Idempotent(), asks),
			tea.NewMethod("llm.stream", "Asks a model and emits its answer token by token.", (*Client).Stream, tea.Streaming(), tea.Idempotent(), asks),
			tea.NewMethod("llm.tools", "Lets a model use other actions as tools until it has an answer.", (*Client).Tools, tea.Streaming(), asks),
			tea.NewMethod("embedding.create", "Turns texts into vectors.", (*Client).Embed, tea.Idempotent()),
		},
	}
}

// asks is the option of an action that needs a question.
func asks(a *tea.Action) {
	a.Params.AnyOf = []*schema.Schema{{Required: []string{"prompt"}}, {Required: []string{"messages"}}}
}

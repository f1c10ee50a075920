package notify

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/statedir"
)

// Bundle is the set of actions, for serve.Main or for linking into a host.
//
// A message cannot be taken back, so the host sends it at most once.
func Bundle() tea.Bundle {
	return tea.Bundle{
		Name:        "notify",
		Version:     "0.1.0",
		Description: "Sends messages to people and rooms that the settings name.",
		Settings:    map[string]*schema.Schema{settingsKey: schema.Of[Settings]()},
		Env:         []string{statedir.Variable, "TZ"},
		Open:        func(_ context.Context, s tea.Settings) (any, error) { return open(s) },
		Actions:     []tea.Action{tea.NewMethod("notify.send", "Sends a message to people or rooms.", (*Client).Send, tea.Once())},
	}
}

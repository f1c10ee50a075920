// Command tea-plugin-bench is a minimal plugin for measurements.
package main

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
)

type message struct {
	Text string `json:"text" doc:"comes back as it is"`
}

func echo(_ context.Context, _ *tea.Request, m message) (message, error) { return m, nil }

func main() {
	serve.Main(tea.Bundle{
		Name: "bench", Version: "1.0.0", Description: "Echoes.",
		Actions: []tea.Action{tea.NewAction("bench.echo", "Returns its text.", echo, tea.Idempotent())},
	})
}

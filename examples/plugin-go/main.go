// Command tea-plugin-text is a whole plugin: one action that counts words.
package main

import (
	"context"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
)

type params struct {
	Text string `json:"text" doc:"the text whose words are counted"`
}

func count(_ context.Context, _ *tea.Request, p params) (map[string]int, error) {
	return map[string]int{"words": len(strings.Fields(p.Text))}, nil
}

var bundle = tea.Bundle{Name: "text", Version: "0.1.0", Actions: []tea.Action{
	tea.NewAction("text.count", "Counts the words of a text.", count, tea.Idempotent()),
}}

func main() { serve.Main(bundle) }

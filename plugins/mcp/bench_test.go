package mcp_test

import (
	"context"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/plugins/mcp"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// BenchmarkCall calls a tool of a process: as an action, and with the SDK alone.
func BenchmarkCall(b *testing.B) {
	server := testServer("good")
	b.Run("action", func(b *testing.B) {
		bundle := mcp.Bundle()
		instance, err := bundle.NewInstance(b.Context(), rawSettings(b, with(server)))
		if err != nil {
			b.Fatal(err)
		}
		defer instance.Close()
		host := &teatest.Host{}
		for b.Loop() {
			if _, err := instance.Invoke(b.Context(), &tea.Request{Action: "mcp.s_add", Params: tea.ValuePayload(map[string]any{"a": int64(1)}), Host: host}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		var args []string
		for _, a := range server["args"].([]any) {
			args = append(args, a.(string))
		}
		session, err := sdk.NewClient(&sdk.Implementation{Name: "bare", Version: "1"}, nil).Connect(b.Context(), &sdk.CommandTransport{Command: exec.Command(server["command"].(string), args...)}, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer session.Close()
		for b.Loop() {
			if _, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "add", Arguments: map[string]any{"a": 1}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

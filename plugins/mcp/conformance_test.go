package mcp_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/mcp"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	settings := with(testServer("good"))
	teatest.Conformance(t, mcp.Bundle(),
		teatest.Request{Action: "mcp.call", Settings: settings, Params: map[string]any{"server": "s", "tool": "add", "arguments": map[string]any{"a": 2, "b": 3}}},
		teatest.Request{Action: "mcp.call", Settings: settings, Params: map[string]any{"server": "s", "tool": "fail"}},
		teatest.Request{Action: "mcp.list_tools", Settings: settings},
		teatest.Request{Action: "mcp.read_resource", Settings: settings, Params: map[string]any{"server": "s", "uri": "mem://notes"}},
		teatest.Request{Action: "mcp.get_prompt", Settings: settings, Params: map[string]any{"server": "s", "prompt": "greet", "arguments": map[string]any{"name": "Ada"}}},
		teatest.Request{Action: "mcp.describe_tools", Settings: settings},
		teatest.Request{Action: "mcp.s_add", Settings: settings, Params: map[string]any{"a": 2, "b": 3}},
		teatest.Request{Action: "mcp.s_add", Settings: settings, Params: map[string]any{"a": "two"}},
		teatest.Request{Action: "mcp.nobody_add", Settings: settings},
	)
}

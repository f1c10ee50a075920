package mcp

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/mcp/internal/a2a"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle is the set of actions, for serve.Main or for linking into a host.
//
// Read-only actions are idempotent. A tool is idempotent if its server declares
// it.
func Bundle() tea.Bundle {
	return tea.Bundle{
		Name:        bundleName,
		Version:     version,
		Description: "Uses the tools, resources and prompts of MCP servers, and A2A agents.",
		Settings:    map[string]*schema.Schema{settingsKey: schema.Of[Settings](), a2a.SettingsKey: schema.Of[a2a.Settings]()},
		Open:        func(_ context.Context, s tea.Settings) (any, error) { return open(s) },
		Actions: []tea.Action{
			tea.NewMethod("mcp.call", "Calls a tool of an MCP server.", (*Client).Call, tea.Streaming()),
			tea.NewMethod("mcp.list_tools", "Lists the tools of MCP servers.", (*Client).ListTools, tea.Idempotent(), tea.Reads()),
			tea.NewMethod("mcp.read_resource", "Reads a resource of an MCP server.", (*Client).ReadResource, tea.Streaming(), tea.Idempotent(), tea.Reads()),
			tea.NewMethod("mcp.get_prompt", "Returns a prompt of an MCP server, as messages for llm.call.", (*Client).GetPrompt, tea.Streaming(), tea.Idempotent(), tea.Reads()),
			tea.NewMethod(describeAction, "Describes the tools of all servers as actions, for the file of accepted tools.", (*Client).DescribeTools, tea.Idempotent()),
			tea.NewMethod("a2a.send", "Sends a message to an A2A agent and waits for its result or question.", (*Client).Send, tea.Streaming()),
			tea.NewMethod("a2a.card", "Returns the card of an A2A agent.", (*Client).Card, tea.Idempotent(), tea.Reads()),
		},
		Dynamic: &tea.Dynamic{
			DynamicActions: tea.DynamicActions{File: settingsKey + ".tools_file", List: describeAction},
			Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
				return req.Instance.(*Client).callAction(ctx, req)
			},
		},
	}
}

const (
	bundleName = "mcp"
	version    = "0.1.0"
	// settingsKey is the top-level key of a workflow's settings.
	settingsKey    = "mcp"
	describeAction = "mcp.describe_tools"
)

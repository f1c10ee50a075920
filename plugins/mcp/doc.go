// Package mcp is the bundle of actions that use MCP servers: their tools as
// mcp.SERVER_TOOL, and mcp.call, mcp.list_tools, mcp.read_resource and
// mcp.get_prompt; and of a2a.send and a2a.card, which use A2A agents (internal/a2a).
//
// Start with [Bundle]; each action is a method of [Client], which is created once
// per set of settings. A client has a server for each name in the settings
// (server.go), which connects on first use (session.go) and lists its tools
// (tools.go). The tools that a user has accepted are in a file (accepted.go).
// requests.go handles requests of a server during a call. Processes are in package
// internal/process.
package mcp

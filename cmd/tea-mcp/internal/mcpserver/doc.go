// Package mcpserver offers the workflows of a directory as the tools of an MCP
// server, and their runs as resources.
//
// Start with [Command] and server.serve. catalog holds the workflows, which are
// reloaded when their files change; call runs one; form turns an interrupt into an
// elicitation; runs has the resources; web is the server for HTTP.
package mcpserver

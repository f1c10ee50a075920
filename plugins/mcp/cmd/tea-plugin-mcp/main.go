// Command tea-plugin-mcp serves the tools of MCP servers to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/plugins/mcp"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(mcp.Bundle()) }

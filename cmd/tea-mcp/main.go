// Command tea-mcp is tea with the command mcp, which offers workflows as tools of
// an MCP server. tea runs it for `tea mcp`.
package main

import (
	"os"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/tea-mcp/internal/mcpserver"
)

// release and commit are set by scripts/build.
var release, commit string

func main() {
	os.Exit(teacmd.Main(teacmd.Options{Release: release, Commit: commit, Commands: []teacmd.Command{mcpserver.Command()}}))
}

// Command tea-lsp is tea with the command lsp, the language server for editors. tea runs
// it for `tea lsp`.
package main

import (
	"os"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/tea-lsp/internal/lsp"
)

// release and commit are set by scripts/build.
var release, commit string

func main() {
	os.Exit(teacmd.Main(teacmd.Options{Release: release, Commit: commit, Commands: []teacmd.Command{lsp.Command()}}))
}

package lsp

import (
	"os"

	teacmd "github.com/the-edge-agent/tea/cmd"
)

// Command returns the command lsp.
func Command() teacmd.Command {
	return teacmd.ToolCommand("lsp", "Check and complete workflow files in an editor: a language server on standard input and output.", func() teacmd.Tool { return new(lspCmd) })
}

type lspCmd struct {
	Strict bool `help:"Check more, as tea validate --strict does; warnings count as errors."`
	Stdio  bool `help:"Ignored: the server always uses standard input and output. Many editors pass it."`
	teacmd.ToolFlags
}

// Do serves until the client ends the session or closes standard input.
func (c *lspCmd) Do(t *teacmd.Toolbox) error {
	return serve(t.Host, os.Stdin, os.Stdout, c.Strict)
}

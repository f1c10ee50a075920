package host

import (
	"io"

	"github.com/the-edge-agent/tea/host/internal/builtin/codeactions"
)

// RunCode is the child process of code.execute. A program that sets
// Options.CodeRunner to a command of its own calls it there with its standard
// input and output, and exits.
func RunCode(in io.Reader, out io.Writer) error { return codeactions.Run(in, out) }

package teacmd

import (
	"io"

	"github.com/the-edge-agent/tea/host"
)

// Tool is a command that works on files. It is a struct with the flags of the command,
// which embeds [ToolFlags].
type Tool interface {
	// Do does the work. The error of [UsageErrorf] or [InvalidErrorf] sets the exit code.
	Do(t *Toolbox) error
	toolFlags() *ToolFlags
}

// Toolbox is what a [Tool] works with.
type Toolbox struct {
	// Host knows the installed plugins, and starts none.
	Host *host.Host
	// Out is stdout, without control characters.
	Out io.Writer
}

// ToolFlags are the flags that every [Tool] has.
type ToolFlags struct {
	pluginFlags
	reportFlags
	tool Tool `kong:"-"`
}

func (f *ToolFlags) toolFlags() *ToolFlags { return f } //nolint:unused // other programs embed ToolFlags

// ToolCommand returns a command for [Options.Commands]. grammar returns a new struct with
// its flags, as kong reads them.
func ToolCommand(name, help string, grammar func() Tool) Command {
	return Command{command{name: name, help: help, grammar: func() any {
		tool := grammar()
		tool.toolFlags().tool = tool
		return tool
	}}}
}

// Run runs the tool.
func (f *ToolFlags) Run(a *app) error {
	a.setReport(f.reportFlags)
	h, err := a.openHost(f.pluginFlags, f.reportFlags, readPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	return f.tool.Do(&Toolbox{Host: h, Out: a.out})
}

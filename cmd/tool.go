package teacmd

import (
	"context"
	"fmt"
	"io"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

// Tool is a command that works on files. It is a struct with the flags of the command,
// which embeds [ToolFlags].
type Tool interface {
	// Do does the work. The error of [UsageErrorf], [InvalidErrorf], [BudgetErrorf] or
	// [StoppedErrorf] sets the exit code.
	Do(t *Toolbox) error
	toolFlags() *ToolFlags
}

// Runner is a [Tool] that runs workflows: its host starts plugins, and the first SIGINT
// or SIGTERM ends the context.
type Runner interface {
	Tool
	// Workflows returns the workflow files, whose rules for plugins apply.
	Workflows() []string
}

// Toolbox is what a [Tool] works with.
type Toolbox struct {
	// Context ends with the first signal if the tool is a [Runner].
	Context context.Context
	// Host knows the installed plugins. It starts them only for a [Runner].
	Host *host.Host
	// Out is stdout, without control characters.
	Out io.Writer
	// Version is the version of tea.
	Version string

	app *app
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
	return ToolGroup(name, help, func() (any, []Tool) {
		tool := grammar()
		return tool, []Tool{tool}
	})
}

// ToolGroup returns a command of several tools. grammar returns a new struct with the
// tools as kong's commands, and the tools.
func ToolGroup(name, help string, grammar func() (any, []Tool)) Command {
	return Command{command{name: name, help: help, grammar: func() any {
		group, tools := grammar()
		for _, tool := range tools {
			tool.toolFlags().tool = tool
		}
		return group
	}}}
}

func (f *ToolFlags) workflowFiles() []string {
	if r, ok := f.tool.(Runner); ok {
		return r.Workflows()
	}
	return nil
}

// Run runs the tool.
func (f *ToolFlags) Run(a *app) error {
	a.setReport(f.reportFlags)
	t := &Toolbox{Context: context.Background(), Out: a.out, Version: a.version, app: a}
	use := readPlugins
	if _, ok := f.tool.(Runner); ok {
		ctx, stop := stoppable()
		defer stop(nil)
		t.Context, use = ctx, startPlugins
	}
	h, err := a.openHost(f.pluginFlags, f.reportFlags, use, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	t.Host = h
	return f.tool.Do(t)
}

// RunOptions returns options of runs with the environment, and the secrets of flags
// like those of `tea run`, which are masked in messages.
func (t *Toolbox) RunOptions(secrets, prefix string) (o host.RunOptions, err error) {
	o.Env = environment()
	o.Secrets, err = t.app.readSecrets(secrets, prefix)
	t.app.mask = host.NewMask(o.Secrets)
	return o, err
}

// JSON prints a value as indented JSON.
func (t *Toolbox) JSON(v any) error { return writeJSON(t.app.stdout, v) }

// Table prints rows with aligned columns, as wide as the terminal.
func (t *Toolbox) Table(header []string, rows [][]string) error {
	return t.app.table(header, rows)
}

// RecordedRun is a run that is done. Secrets in it are masked.
type RecordedRun struct {
	ID           string
	Input, State map[string]any
}

// Recorded returns a run. dir is the value of a flag like -c of `tea runs`.
func (t *Toolbox) Recorded(dir, run string) (*RecordedRun, error) {
	r, err := keepFlags{dir}.load(t.app, t.Host, run)
	if err != nil {
		return nil, err
	}
	defer r.wf.Close()
	entry, err := r.runs.Entry(r.id)
	if err != nil {
		return nil, err
	}
	if entry.Status != flow.Done {
		return nil, fmt.Errorf("run %s is %s; only a run that is done has a result", entry.ID, entry.Status)
	}
	start, err := checkpoints.Value(r.contents.Records[0])
	if err != nil {
		return nil, err
	}
	state, err := r.stateAt(uint64(len(r.contents.Records)))
	fields, _ := start.(map[string]any)
	input, _ := fields["input"].(map[string]any)
	return &RecordedRun{entry.ID, input, state}, err
}

// BudgetErrorf returns an error of [Tool.Do] for work that a budget ended.
func BudgetErrorf(format string, args ...any) error {
	return &exitError{exitBudget, fmt.Errorf(format, args...)}
}

// StoppedErrorf returns an error of [Tool.Do] for work that a signal ended.
func StoppedErrorf(format string, args ...any) error {
	return &exitError{exitStopped, fmt.Errorf(format, args...)}
}

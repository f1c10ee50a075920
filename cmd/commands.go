package teacmd

import (
	"github.com/alecthomas/kong"
)

// command is one command of the command line.
type command struct {
	name, help string
	// grammar returns a new struct with the arguments and flags of the command.
	// Its Run method executes the command. It is nil if the command is the
	// program tea-NAME, because of the size of what that links.
	grammar func() any
}

// Command is a command for [Options.Commands].
type Command struct{ command }

// commands returns the commands of tea, in the order of the help.
func commands() []command {
	return []command{
		{"run", "Run a workflow.", func() any { return new(runCmd) }},
		{"resume", "Continue a run that was interrupted, stopped or failed.", func() any { return new(resumeCmd) }},
		{"fork", "Copy a run up to a step and continue from there with other input.", func() any { return new(forkCmd) }},
		{"call", "Call one action, without a workflow.", func() any { return new(callCmd) }},
		{"validate", "Check workflow files without running anything.", func() any { return new(validateCmd) }},
		{"inspect", "Draw a workflow's graph as text, JSON, DOT, Mermaid or SVG.", func() any { return new(inspectCmd) }},
		{"test", "Run the tests of workflows.", func() any { return new(testCmd) }},
		{"actions", "List the actions, or show one with its parameters.", func() any { return new(actionsCmd) }},
		{"runs", "List runs, show a run, print its events.", func() any { return new(runsCmd) }},
		{"checkpoint", "Show and compare checkpoints, remove old ones.", func() any { return new(checkpointCmd) }},
		{"memory", "Inspect or reset the memory of workflows.", func() any { return new(memoryCmd) }},
		{"mcp", "Offer the workflows of a directory as the tools of an MCP server.", nil},
		{"plugin", "Write, check, pack, sign, install, pin and watch plugins.", func() any { return new(pluginCmd) }},
		{"build", "Build a program with bundles linked in, and a workflow.", func() any { return new(buildCmd) }},
		{"schema", "Print the JSON Schema of workflow files, for editors.", func() any { return new(schemaCmd) }},
		{"init", "Write a small working project.", func() any { return new(initCmd) }},
		{"doctor", "Check that this machine can run workflows.", func() any { return new(doctorCmd) }},
		{"completion", "Print the completion script for a shell.", func() any { return new(completionCmd) }},
		{"version", "Print the version.", func() any { return new(versionCmd) }},
	}
}

// grammar has the flags of tea without a command.
type grammar struct {
	Version bool `help:"Print the version and exit."`
}

// find returns a command by its name, or nil. The commands that [Options] add
// replace those of tea.
func (a *app) find(name string) *command {
	for _, list := range [][]command{a.added, commands()} {
		for i := range list {
			if list[i].name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// newParser returns the parser. If the first argument is the name of a command,
// it has only that command: describing all of them would take longer than
// running a small workflow.
func (a *app) newParser(args []string, options ...kong.Option) (*kong.Kong, error) {
	chosen := commands()
	if len(args) > 0 {
		if c := a.find(args[0]); c != nil {
			chosen = []command{*c}
		}
	}
	for _, c := range chosen {
		var grammar any = new(struct{})
		if c.grammar != nil {
			grammar = c.grammar()
		}
		options = append(options, kong.DynamicCommand(c.name, c.help, "", grammar))
	}
	return kong.New(new(grammar), append(options, kong.Name("tea"))...)
}

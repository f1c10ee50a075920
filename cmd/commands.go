package teacmd

import (
	"github.com/alecthomas/kong"
)

// command is one command of the command line.
type command struct {
	name, help string
	// grammar returns a new struct with the arguments and flags of the command.
	// Its Run method executes the command. It is nil if a separate program
	// implements the command, to keep this binary small.
	grammar func() any
	// program is tea-PROGRAM if grammar is nil; "" is the name of the command.
	program string
}

// Command is a command for [Options.Commands].
type Command struct{ command }

// commands returns the commands of tea, in the order of the help.
func commands() []command {
	return []command{
		{name: "run", help: "Run a workflow.", grammar: func() any { return new(runCmd) }},
		{name: "resume", help: "Continue a run that was interrupted, stopped or failed.", grammar: func() any { return new(resumeCmd) }},
		{name: "fork", help: "Copy a run up to a step and continue from there with other input.", grammar: func() any { return new(forkCmd) }},
		{name: "call", help: "Call one action, without a workflow.", grammar: func() any { return new(callCmd) }},
		{name: "validate", help: "Check workflow files without running anything.", grammar: func() any { return new(validateCmd) }},
		{name: "inspect", help: "Draw a workflow's graph as text, JSON, DOT, Mermaid or SVG.", grammar: func() any { return new(inspectCmd) }},
		{name: "test", help: "Run the tests of workflows.", grammar: func() any { return new(testCmd) }},
		{name: "eval", help: "Run workflows on cases, grade the results and compare variants."},
		{name: "actions", help: "List the actions, or show one with its parameters.", grammar: func() any { return new(actionsCmd) }},
		{name: "explain", help: "Explain an error code, or an action.", grammar: func() any { return new(explainCmd) }},
		{name: "runs", help: "List runs, show a run, print its events.", grammar: func() any { return new(runsCmd) }},
		{name: "checkpoint", help: "Show and compare checkpoints, remove old ones.", grammar: func() any { return new(checkpointCmd) }},
		{name: "memory", help: "Inspect or reset the memory of workflows.", grammar: func() any { return new(memoryCmd) }},
		{name: "mcp", help: "Offer the workflows of a directory as the tools of an MCP server."},
		{name: "worker", help: "Execute runs of a Temporal server.", program: engineProgram},
		{name: "serve", help: "Run the workflows of a directory by schedule, webhook, file or request."},
		{name: "migrate", help: "Write workflows of tea from those of other systems, each with a report."},
		{name: "lsp", help: "Check and complete workflow files in an editor: a language server on standard input and output."},
		{name: "plugin", help: "Write, check, pack, sign, install, pin and watch plugins.", grammar: func() any { return new(pluginCmd) }},
		{name: "build", help: "Build a program with bundles linked in, and a workflow.", grammar: func() any { return new(buildCmd) }},
		{name: "schema", help: "Print the JSON Schema of workflow files, for editors.", grammar: func() any { return new(schemaCmd) }},
		{name: "init", help: "Write a small working project.", grammar: func() any { return new(initCmd) }},
		{name: "doctor", help: "Check that this machine can run workflows.", grammar: func() any { return new(doctorCmd) }},
		{name: "completion", help: "Print the completion script for a shell.", grammar: func() any { return new(completionCmd) }},
		{name: "version", help: "Print the version.", grammar: func() any { return new(versionCmd) }},
	}
}

// grammar holds the flags of tea without a command.
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
	parser, err := kong.New(new(grammar), append(options, kong.Name("tea"))...)
	if err != nil {
		return nil, err
	}
	for _, node := range parser.Model.Children {
		if lines := examples[node.Name]; lines != "" {
			node.Detail = "Examples:\n" + lines
		}
	}
	return parser, nil
}

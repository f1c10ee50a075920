package main

import (
	"slices"

	"github.com/alecthomas/kong"
)

// command is one command of the command line.
type command struct {
	name, help string
	// grammar makes the struct with its arguments and flags, whose Run method
	// does the work.
	grammar func() any
}

// commands are all of them, in the order of the help.
func commands() []command {
	return []command{
		{"run", "Run a workflow.", func() any { return new(runCmd) }},
		{"resume", "Go on with a run that was interrupted, stopped or failed.", func() any { return new(resumeCmd) }},
		{"fork", "Copy a run up to a step and go on from there with other input.", func() any { return new(forkCmd) }},
		{"validate", "Check workflow files without running anything.", func() any { return new(validateCmd) }},
		{"inspect", "Draw a workflow's graph as text, JSON, DOT, Mermaid or SVG.", func() any { return new(inspectCmd) }},
		{"test", "Run the tests of workflows.", func() any { return new(testCmd) }},
		{"actions", "List the actions, or show one with its parameters.", func() any { return new(actionsCmd) }},
		{"runs", "List runs, show one, read its events.", func() any { return new(runsCmd) }},
		{"checkpoint", "Look into checkpoints, compare them, remove old ones.", func() any { return new(checkpointCmd) }},
		{"memory", "Look into the memory of workflows, or empty it.", func() any { return new(memoryCmd) }},
		{"plugin", "List plugins, refresh their manifests, trust a directory of them.", func() any { return new(pluginCmd) }},
		{"schema", "Print the JSON Schema of workflow files, for editors.", func() any { return new(schemaCmd) }},
		{"init", "Write a small working project.", func() any { return new(initCmd) }},
		{"doctor", "Check that this machine is fit to run workflows.", func() any { return new(doctorCmd) }},
		{"completion", "Print the completion script for a shell.", func() any { return new(completionCmd) }},
		{"version", "Print the version.", func() any { return new(versionCmd) }},
	}
}

// grammar is what stands beside the commands.
type grammar struct {
	Version bool `help:"Print the version and exit."`
}

// newParser makes the parser. Where the first argument is the name of a
// command it knows that one alone: to describe all of them would take longer
// than to run a small workflow.
func newParser(args []string, options ...kong.Option) (*kong.Kong, error) {
	chosen := commands()
	if len(args) > 0 {
		if i := slices.IndexFunc(chosen, func(c command) bool { return c.name == args[0] }); i >= 0 {
			chosen = chosen[i : i+1]
		}
	}
	for _, c := range chosen {
		options = append(options, kong.DynamicCommand(c.name, c.help, "", c.grammar()))
	}
	return kong.New(new(grammar), append(options, kong.Name("tea"))...)
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/the-edge-agent/tea/host"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script, which knows every command with its flags; where
// neither fits, the shell completes files.
func (c *completionCmd) Run(a *app) error {
	parser, err := newParser(nil)
	if err != nil {
		return err
	}
	var nodes []completed
	collectCommands("", parser.Model.Node, &nodes)
	switch c.Shell {
	case "bash":
		err = bashCompletion(a.stdout, nodes)
	case "zsh":
		err = zshCompletion(a.stdout, nodes)
	case "fish":
		err = fishCompletion(a.stdout, nodes)
	}
	return err
}

// completed is a command with what may follow it.
type completed struct {
	// path is the command's words, "" for tea itself.
	path     string
	commands []*kong.Node
	flags    []*kong.Flag
	// values are what its argument may be; nil = anything, such as a file.
	values []string
	// source is what the shell asks tea for: "run" or "action", "" for nothing.
	source string
}

// completer is the hidden command that the scripts call for values that only
// the machine knows.
const completer = "__complete"

// complete prints what an argument may be, one value a line: runs or actions.
// words are the command line so far, for the flags that say where to look. It
// is silent where anything goes wrong: nobody asked for an answer.
func (a *app) complete(source string, words []string) {
	given := map[string][]string{}
	for i, word := range words {
		name, text, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			text = words[i+1]
		}
		given[name] = append(given[name], text)
	}
	switch source {
	case "run":
		dir := keepFlags{}
		for _, name := range slices.Concat(given["--checkpoint-dir"], given["-c"]) {
			dir.CheckpointDir = name
		}
		path, err := dir.dir(a)
		if err != nil {
			return
		}
		runs, err := listRuns(path)
		if err != nil {
			return
		}
		for _, r := range runs {
			fmt.Fprintln(a.out, r.ID)
		}
	case "action":
		a.setReport(reportFlags{Quiet: true})
		h, err := a.openHost(pluginFlags{Plugins: given["--plugins"]}, reportFlags{Quiet: true}, readPlugins, host.Options{})
		if err != nil {
			return
		}
		defer h.Close()
		entries, err := h.Actions()
		if err != nil {
			return
		}
		for _, e := range entries {
			fmt.Fprintln(a.out, e.Name)
		}
	}
}

func collectCommands(path string, n *kong.Node, out *[]completed) {
	c := completed{path: path}
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			c.commands = append(c.commands, child)
		}
	}
	for _, flags := range n.AllFlags(true) {
		c.flags = append(c.flags, flags...)
	}
	for _, arg := range n.Positional {
		c.values = append(c.values, enumOf(arg)...)
		if arg.Name == "run" || arg.Name == "action" {
			c.source = arg.Name
		}
	}
	*out = append(*out, c)
	for _, child := range c.commands {
		collectCommands(strings.TrimSpace(path+" "+child.Name), child, out)
	}
}

// enumOf are the only values that a flag or an argument takes; nil = any.
func enumOf(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return strings.Split(v.Enum, ",")
}

// wordsOf are what completion offers for a flag: its only values, or those
// that its own check knows.
func wordsOf(f *kong.Flag) []string {
	if words := f.Tag.Get("values"); words != "" {
		return strings.Split(words, ",")
	}
	return enumOf(f.Value)
}

// takesValue tells whether a flag is followed by a value.
func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// flagWords are a flag's long and short form.
func flagWords(f *kong.Flag) []string {
	words := []string{"--" + f.Name}
	if f.Short != 0 {
		words = append(words, "-"+string(f.Short))
	}
	return words
}

// valueFlags are the flags of all commands that are followed by a value.
func valueFlags(all []completed) []string {
	var words []string
	for _, c := range all {
		for _, f := range c.flags {
			if takesValue(f) {
				words = append(words, flagWords(f)...)
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// arguments are the words that may follow where no flag does.
func (c completed) arguments() []string {
	words := slices.Clone(c.values)
	for _, n := range c.commands {
		words = append(words, n.Name)
	}
	return words
}

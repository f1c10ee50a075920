package teacmd

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

// Run prints the script. It completes commands, flags and their values, and
// files everywhere else.
func (c *completionCmd) Run(a *app) error {
	parser, err := a.newParser(nil)
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

// completed is a command with its possible continuations.
type completed struct {
	// path holds the words of the command, "" for tea itself.
	path     string
	commands []*kong.Node
	flags    []*kong.Flag
	// values are the possible values of its argument; nil allows anything, such
	// as a file.
	values []string
	// source is what the shell asks tea for: "run" or "action"; "" for nothing.
	source string
}

// completer is the hidden command with which the scripts ask for runs and
// actions.
const completer = "__complete"

// complete prints the possible values of an argument, one on each line: runs or
// actions. words are the command line so far, for the flags that name
// directories. Errors are ignored: the user has not asked for anything yet.
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
			if slices.Contains(words[:max(len(words)-1, 0)], e.Name) {
				return // what follows the action is not one
			}
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
		switch arg.Name {
		case "run", "action":
			c.source = arg.Name
		case "code|action":
			c.source = "action"
		}
	}
	*out = append(*out, c)
	for _, child := range c.commands {
		collectCommands(strings.TrimSpace(path+" "+child.Name), child, out)
	}
}

// enumOf returns the only allowed values of a flag or an argument; nil allows
// any.
func enumOf(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return strings.Split(v.Enum, ",")
}

// wordsOf returns the completions of a flag: its only allowed values, or those
// in its values tag.
func wordsOf(f *kong.Flag) []string {
	if words := f.Tag.Get("values"); words != "" {
		return strings.Split(words, ",")
	}
	return enumOf(f.Value)
}

// takesValue reports whether a flag takes a value.
func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// flagWords returns the long and the short form of a flag.
func flagWords(f *kong.Flag) []string {
	words := []string{"--" + f.Name}
	if f.Short != 0 {
		words = append(words, "-"+string(f.Short))
	}
	return words
}

// valueFlags returns the flags of all commands that take a value.
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

// arguments returns the possible words that are not flags.
func (c completed) arguments() []string {
	words := slices.Clone(c.values)
	for _, n := range c.commands {
		words = append(words, n.Name)
	}
	return words
}

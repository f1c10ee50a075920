package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
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
	*out = append(*out, c)
	for _, child := range c.commands {
		collectCommands(strings.TrimSpace(path+" "+child.Name), child, out)
	}
}

// words are the names of commands and the long flags.
func (c completed) words() string {
	var words []string
	for _, n := range c.commands {
		words = append(words, n.Name)
	}
	for _, f := range c.flags {
		words = append(words, "--"+f.Name)
	}
	return strings.Join(words, " ")
}

const bashHead = `# bash completion for tea; load it with: source <(tea completion bash)
_tea() {
    local cur=${COMP_WORDS[COMP_CWORD]} path="" word words
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$word" in -*) continue ;; esac
        case "${path:+$path }$word" in
`

const bashTail = `    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _tea tea
`

func bashCompletion(w io.Writer, all []completed) error {
	var b strings.Builder
	b.WriteString(bashHead)
	for _, c := range all[1:] {
		fmt.Fprintf(&b, "        %q) path=%q ;;\n", c.path, c.path)
	}
	b.WriteString("        esac\n    done\n    case \"$path\" in\n")
	for _, c := range all {
		fmt.Fprintf(&b, "    %q) words=%q ;;\n", c.path, c.words())
	}
	b.WriteString(bashTail)
	_, err := io.WriteString(w, b.String())
	return err
}

const zshHead = `#compdef tea
# zsh completion for tea; put it as _tea into a directory of $fpath
_tea() {
    local path="" word
    local -a items
    for word in ${words[2,CURRENT-1]}; do
        [[ $word == -* ]] && continue
        case "${path:+$path }$word" in
`

const zshTail = `    esac
    _describe 'tea' items || _files
    [[ ${words[CURRENT]} == -* ]] || _files
}
compdef _tea tea
`

func zshCompletion(w io.Writer, all []completed) error {
	var b strings.Builder
	b.WriteString(zshHead)
	for _, c := range all[1:] {
		fmt.Fprintf(&b, "        %s) path=%s ;;\n", shellQuote(c.path), shellQuote(c.path))
	}
	b.WriteString("        esac\n    done\n    case \"$path\" in\n")
	for _, c := range all {
		var items []string
		add := func(name, help string) {
			items = append(items, shellQuote(strings.ReplaceAll(name, ":", `\:`)+":"+help))
		}
		for _, n := range c.commands {
			add(n.Name, n.Help)
		}
		for _, f := range c.flags {
			add("--"+f.Name, f.Help)
		}
		path := shellQuote(c.path)
		fmt.Fprintf(&b, "    %s) items=(%s) ;;\n", path, strings.Join(items, " "))
	}
	b.WriteString(zshTail)
	_, err := io.WriteString(w, b.String())
	return err
}

func fishCompletion(w io.Writer, all []completed) error {
	var b strings.Builder
	b.WriteString("# fish completion for tea; put it as tea.fish into ~/.config/fish/completions\n")
	for _, c := range all {
		condition := "__fish_use_subcommand"
		if c.path != "" {
			condition = "__fish_seen_subcommand_from " + strings.ReplaceAll(c.path, " ", "; and __fish_seen_subcommand_from ")
		}
		for _, n := range c.commands {
			fmt.Fprintf(&b, "complete -c tea -n %s -a %s -d %s\n", shellQuote(condition), n.Name, shellQuote(n.Help))
		}
		for _, f := range c.flags {
			short := ""
			if f.Short != 0 {
				short = fmt.Sprintf(" -s %c", f.Short)
			}
			fmt.Fprintf(&b, "complete -c tea -n %s -l %s%s -d %s\n", shellQuote(condition), f.Name, short, shellQuote(f.Help))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

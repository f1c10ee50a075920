package teacmd

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// runner is a command of the grammar.
type runner interface {
	Run(a *app) error
}

// parse applies the command line to the grammar and returns the selected
// command; nil if help or the version was printed.
//
// kong's own Parse and Run look up methods by names that are only known at run
// time. The linker would have to keep every exported method of every type, a
// tenth of the binary.
func (a *app) parse(parser *kong.Kong, args []string) (runner, error) {
	c, err := kong.Trace(parser, args)
	if err != nil {
		return nil, err
	}
	if c.Error != nil {
		return nil, suggestCommand(c, args)
	}
	for _, step := range c.Path {
		switch {
		case step.Flag == nil:
		case step.Flag == parser.Model.HelpFlag:
			return nil, c.PrintUsage(false)
		case step.Flag.Name == "version":
			_, err := fmt.Fprintln(parser.Stdout, a.version)
			return nil, err
		}
	}
	if err := c.Reset(); err != nil {
		return nil, err
	}
	if err := c.Resolve(); err != nil {
		return nil, err
	}
	if _, err := c.Apply(); err != nil {
		return nil, err
	}
	if err := checkGiven(c.Path); err != nil {
		return nil, err
	}
	return chosen(c)
}

// checkGiven refuses an empty value, such as that of an unset variable in a script,
// and a second value of a flag that takes one: either would have no effect.
func checkGiven(path []*kong.Path) error {
	given := map[*kong.Value]bool{}
	for _, step := range path {
		v := step.Positional
		if step.Flag != nil {
			v = step.Flag.Value
		}
		if v == nil || step.Resolved {
			continue
		}
		if given[v] && step.Flag != nil && v.Target.Kind() == reflect.String {
			return fmt.Errorf("--%s is given twice", v.Name)
		}
		given[v] = true
		if isEmpty(v.Target) {
			return fmt.Errorf("%s is empty", v.ShortSummary())
		}
	}
	return nil
}

// isEmpty reports an empty text, or a list with one.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return v.Len() == 0
	case reflect.Slice:
		for i := range v.Len() {
			if v.Index(i).Kind() == reflect.String && v.Index(i).Len() == 0 {
				return true
			}
		}
	}
	return false
}

// suggestCommand improves the error of a command line. kong parses a misspelled
// command as an argument of the default command of its parent and suggests
// nothing.
func suggestCommand(c *kong.Context, args []string) error {
	node := c.Selected()
	if node == nil || node.Parent == nil || node.Parent.DefaultCmd != node {
		return c.Error
	}
	at := slices.Index(args, node.Parent.Name) + 1
	if at == 0 || at == len(args) {
		return c.Error
	}
	var names []string
	for _, child := range node.Parent.Children {
		names = append(names, child.Name)
	}
	if hint := diag.Suggest(args[at], names); hint != "" && !slices.Contains(names, args[at]) {
		return fmt.Errorf("unexpected argument %s, %s", args[at], hint)
	}
	return c.Error
}

// chosen returns the command of an applied command line if nothing is missing.
func chosen(c *kong.Context) (runner, error) {
	node := c.Selected()
	if node == nil {
		node = c.Model.Node
	}
	exclusive := map[string]string{}
	for _, flag := range node.Flags {
		if flag.Required && !flag.Set {
			return nil, fmt.Errorf("missing flag %s", flag.Summary())
		}
		for _, group := range flag.Xor {
			if other := exclusive[group]; flag.Set && other != "" {
				return nil, fmt.Errorf("--%s and --%s cannot be used together", other, flag.Name)
			}
			if flag.Set {
				exclusive[group] = flag.Name
			}
		}
		if err := checkEnum(flag.Value); err != nil {
			return nil, err
		}
	}
	for _, arg := range node.Positional {
		if arg.Required && !arg.Set {
			return nil, fmt.Errorf("expected %q", arg.Summary())
		}
		if err := checkEnum(arg); err != nil {
			return nil, err
		}
	}
	command, ok := node.Target.Addr().Interface().(runner)
	if !ok {
		return nil, fmt.Errorf("expected one of %s", quotedNames(node.Children))
	}
	return command, nil
}

func checkEnum(v *kong.Value) error {
	allowed := enumOf(v)
	if allowed == nil || slices.Contains(allowed, v.Target.String()) {
		return nil
	}
	return fmt.Errorf("%s must be one of %s, got %q", v.ShortSummary(), strings.Join(allowed, ", "), v.Target.String())
}

func quotedNames(nodes []*kong.Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, fmt.Sprintf("%q", n.Name))
	}
	return strings.Join(names, ", ")
}

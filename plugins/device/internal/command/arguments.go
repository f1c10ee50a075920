package command

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Param is a parameter of a command.
type Param struct {
	Type    string   `json:"type" enum:"string,integer,number,path" doc:"string, integer, number, or path: a file below root"`
	Enum    []string `json:"enum,omitempty" doc:"the allowed strings"`
	Pattern string   `json:"pattern,omitempty" format:"re2" doc:"regular expression that the whole string matches"`
	Min     float64  `json:"min,omitempty" atMost:"max" doc:"smallest number; default 0"`
	Max     *float64 `json:"max,omitempty" doc:"largest number"`
	Root    string   `json:"root,omitempty" format:"path" doc:"directory of a path"`
}

// JSONSchema returns the schema, in which each type has its own limits.
func (Param) JSONSchema() *schema.Schema {
	type plain Param
	return schema.With[plain](`{"allOf": [
		{"if": {"properties": {"type": {"enum": ["string"]}}, "required": ["type"]}, "then": {"anyOf": [{"required": ["enum"]}, {"required": ["pattern"]}]}},
		{"if": {"properties": {"type": {"enum": ["path"]}}, "required": ["type"]}, "then": {"required": ["root"]}}]}`)
}

// maxString is the maximum length of a string in bytes.
const maxString = 4096

// check returns a mistake in the settings of a parameter.
func (p Param) check() error {
	if p.Type == "path" && !filepath.IsAbs(p.Root) {
		return fmt.Errorf("root %q is not absolute", p.Root)
	}
	return nil
}

// text returns the argument for a value.
func (p Param) text(v any) (string, error) {
	switch p.Type {
	case "integer", "number":
		return p.number(v)
	}
	s, ok := v.(string)
	switch {
	case !ok:
		return "", fmt.Errorf("%s is not a string", value.Brief(v))
	case slices.Contains(p.Enum, s):
		return s, nil
	case p.Enum != nil:
		return "", guard.Limit("%s is not one of %s", value.Brief(v), strings.Join(p.Enum, ", "))
	case s == "" || len(s) > maxString || strings.ContainsFunc(s, unicode.IsControl):
		return "", fmt.Errorf("%s is empty, too long, or has control characters", value.Brief(v))
	case p.Type == "path":
		return p.path(s)
	case !regexp.MustCompile(`^(?:` + p.Pattern + `)$`).MatchString(s):
		return "", guard.Limit("%s does not match the pattern %s", value.Brief(v), p.Pattern)
	}
	return s, nil
}

func (p Param) number(v any) (string, error) {
	f, ok := value.Float(v)
	switch {
	case !ok || p.Type == "integer" && !value.IsInteger(v):
		return "", fmt.Errorf("%s is not of type %s", value.Brief(v), p.Type)
	case f < p.Min:
		return "", guard.Limit("%s is less than %v", value.Brief(v), p.Min)
	case p.Max != nil && f > *p.Max:
		return "", guard.Limit("%s is more than %v", value.Brief(v), *p.Max)
	}
	if i, ok := value.Integer(v); ok {
		return value.Brief(i), nil
	}
	return strconv.FormatFloat(f, 'f', -1, 64), nil
}

// path returns the absolute path of a file below root. Links must not lead out of it.
func (p Param) path(given string) (string, error) {
	name, err := confine.Clean(given)
	if err != nil {
		return "", guard.Limit("%s", tea.AsError(err).Message)
	}
	root, err := filepath.EvalSymlinks(p.Root)
	if err != nil {
		return "", err
	}
	file := filepath.Join(root, name)
	real, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) { // a new file in a directory that exists
		if real, err = filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
			real = filepath.Join(real, filepath.Base(file))
		}
	}
	if err != nil {
		return "", err
	}
	if inside, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(inside) {
		return "", guard.Limit("%q leads out of %s", given, p.Root)
	}
	return file, nil
}

// placeholder is the form of a parameter in an argument.
const placeholder = `\{([a-z][a-z0-9_]*)\}`

// arguments returns the arguments of a command with the values of its parameters.
func (c Command) arguments(values map[string]any) ([]string, error) {
	texts := map[string]string{}
	for name, v := range values {
		p, ok := c.Params[name]
		if !ok {
			return nil, fmt.Errorf("unknown parameter %q%s", name, diag.Ending(name, slices.Sorted(maps.Keys(c.Params))))
		}
		text, err := p.text(v)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		texts[name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(c.Params)) {
		if _, ok := texts[name]; !ok {
			return nil, fmt.Errorf("parameter %q is missing", name)
		}
	}
	form := regexp.MustCompile(placeholder)
	args := make([]string, 0, len(c.Argv))
	for _, arg := range c.Argv[1:] {
		filled := form.ReplaceAllStringFunc(arg, func(name string) string { return texts[name[1:len(name)-1]] })
		if first := form.FindStringSubmatchIndex(arg); first != nil && first[0] == 0 && strings.HasPrefix(filled, "-") && !c.Params[arg[first[2]:first[3]]].allowsDash(filled) {
			return nil, guard.Limit("the value %q would be an option of the command", filled)
		}
		args = append(args, filled)
	}
	return args, nil
}

// allowsDash reports whether the settings name an argument that begins with a dash:
// the string itself, or a range of negative numbers.
func (p Param) allowsDash(text string) bool { return slices.Contains(p.Enum, text) || p.Min < 0 }

// checkArguments returns a mistake in the arguments of a command.
func (c Command) checkArguments() error {
	form := regexp.MustCompile(placeholder)
	if form.MatchString(c.Argv[0]) {
		return errors.New("argv[0]: the program must not be a parameter")
	}
	used := map[string]bool{}
	for _, arg := range c.Argv {
		for _, match := range form.FindAllStringSubmatch(arg, -1) {
			used[match[1]] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Params)) {
		if err := c.Params[name].check(); err != nil {
			return fmt.Errorf("params.%s: %w", name, err)
		}
		if !used[name] {
			return fmt.Errorf("params.%s: no argument has {%s}", name, name)
		}
	}
	return nil
}

package spec

import (
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
)

// settings reads the settings and replaces ${VAR} and ${VAR:-default} in every
// string.
func (d *decoder) settings(v element) map[string]any {
	if !v.is(source.Map) {
		return nil
	}
	return d.expanded(v).(map[string]any)
}

func (d *decoder) expanded(v element) any {
	switch v.node.Kind {
	case source.String:
		return d.expand(v)
	case source.List:
		list := make([]any, 0, len(v.node.Items))
		for _, item := range v.items() {
			list = append(list, d.expanded(item))
		}
		return list
	case source.Map:
		object := make(map[string]any, len(v.node.Members))
		for _, e := range v.entries() {
			object[e.key.Text] = d.expanded(e.element)
		}
		return object
	}
	return v.node.Scalar
}

// expand replaces the variables in one string. $${ becomes ${.
func (d *decoder) expand(v element) string {
	text := v.text()
	rest := text.Value
	if !strings.Contains(rest, "${") {
		return rest
	}
	var out strings.Builder
	for {
		at := strings.Index(rest, "${")
		if at < 0 {
			out.WriteString(rest)
			return out.String()
		}
		if at > 0 && rest[at-1] == '$' {
			out.WriteString(rest[:at-1] + "${")
			rest = rest[at+2:]
			continue
		}
		out.WriteString(rest[:at])
		end := strings.IndexByte(rest[at:], '}')
		if end < 0 {
			d.errorf(diagcode.VariableSyntax, v.pos(), "close it with }, or write $${ for a literal ${", "a ${ is not closed")
			return out.String()
		}
		out.WriteString(d.variable(v, rest[at+2:at+end]))
		rest = rest[at+end+1:]
	}
}

// variable returns the value of VAR or VAR:-default. As in a shell, the default
// also replaces an empty value.
func (d *decoder) variable(v element, inner string) string {
	name, preset, hasDefault := strings.Cut(inner, ":-")
	if !isVariable(name) {
		d.errorf(diagcode.VariableSyntax, v.pos(), "write ${NAME} or ${NAME:-default}, and $${ for a literal ${", "${%s} is not a variable name", inner)
		return ""
	}
	found, ok := d.options.LookupEnv(name)
	switch {
	case ok && (found != "" || !hasDefault):
		return found
	case hasDefault:
		return preset
	}
	d.errorf(diagcode.VariableMissing, v.pos(), "set it, or give a default: ${"+name+":-default}", "the environment variable %s is not set", name)
	return ""
}

func isVariable(name string) bool {
	for i, r := range name {
		switch {
		case r == '_', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', i > 0 && r >= '0' && r <= '9':
		default:
			return false
		}
	}
	return name != ""
}

package file

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	maxJSONPath  = 1024
	maxJSONSteps = 32
)

// JSONPath names nodes of a JSON document: $ is the document, .name and
// ["name"] a member, [0] an item, [-1] the last one, [*] and .* each of them.
type JSONPath struct {
	text  string
	steps []step
}

// step goes from a node to others.
type step struct {
	name  string
	index int
	kind  stepKind
}

type stepKind int

const (
	member stepKind = iota
	item
	each
)

// plainName is a member that needs no quotes.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL_][\pL\pN_-]*`) })

// wholeIndex is what stands between brackets for an item.
var wholeIndex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?(0|[1-9][0-9]{0,8})$`) })

// ParseJSONPath reads a path. Everything beyond the forms of [JSONPath] is a
// validation_error: filters, expressions, recursive descent, slices.
func ParseJSONPath(text string) (*JSONPath, error) {
	bad := func(at int, why string) (*JSONPath, error) {
		return nil, tea.Errorf(tea.ValidationError, "the JSON path %q, at character %d: %s; a path is $ and then .name, [\"name\"], [0], [*] or .*", text, utf8.RuneCountInString(text[:at])+1, why)
	}
	switch {
	case len(text) > maxJSONPath || !utf8.ValidString(text):
		return nil, tea.Errorf(tea.ValidationError, "a JSON path is UTF-8 of at most %d bytes", maxJSONPath)
	case !strings.HasPrefix(text, "$"):
		return bad(0, "it does not begin with $")
	}
	p := &JSONPath{text: text}
	for at := 1; at < len(text); {
		s, n, fault := readStep(text[at:])
		if fault != "" {
			return bad(at, fault)
		}
		if p.steps = append(p.steps, s); len(p.steps) > maxJSONSteps {
			return bad(at, fmt.Sprintf("it has more than %d steps", maxJSONSteps))
		}
		at += n
	}
	return p, nil
}

// readStep reads the step at the beginning of s.
func readStep(s string) (found step, length int, fault string) {
	if s == ".*" || strings.HasPrefix(s, ".*.") || strings.HasPrefix(s, ".*[") {
		return step{kind: each}, 2, ""
	}
	if s[0] == '.' {
		name := plainName().FindString(s[1:])
		if name == "" {
			return step{}, 0, "a name is missing"
		}
		return step{name: name}, 1 + len(name), ""
	}
	if s[0] != '[' || len(s) < 3 {
		return step{}, 0, "that is no step"
	}
	if s[1] == '"' || s[1] == '\'' {
		return readQuoted(s)
	}
	end := strings.IndexByte(s, ']')
	if end < 0 {
		return step{}, 0, "the ] is missing"
	}
	inside := s[1:end]
	if inside == "*" {
		return step{kind: each}, 3, ""
	}
	if !wholeIndex().MatchString(inside) {
		return step{}, 0, "between [ and ] stands a whole number, a name in quotes, or *"
	}
	index, err := strconv.Atoi(inside)
	if err != nil {
		return step{}, 0, err.Error()
	}
	return step{kind: item, index: index}, end + 1, ""
}

// readQuoted reads ["name"] or ['name']; a backslash takes the next character.
func readQuoted(s string) (found step, length int, fault string) {
	var name strings.Builder
	for i := 2; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			name.WriteByte(s[i])
		case s[i] == s[1]:
			if i+1 < len(s) && s[i+1] == ']' {
				return step{name: name.String()}, i + 2, ""
			}
			return step{}, 0, "the ] is missing behind the name"
		default:
			name.WriteByte(s[i])
		}
	}
	return step{}, 0, "the name has no end"
}

// Node is a part of a document and the path that leads to it alone.
type Node struct {
	Path  string
	Value any
}

// segment is a step that was taken: to a member or to an item.
type segment struct {
	name  string
	index int
	item  bool
}

// visit calls fn for the parts of a document that the path names, in their
// order; members in that of their names. The trail is valid during the call.
// It ends where fn gives false.
func (p *JSONPath) visit(document any, fn func(trail []segment, v any) bool) {
	descend(p.steps, document, make([]segment, 0, len(p.steps)), fn)
}

func descend(steps []step, v any, trail []segment, fn func([]segment, any) bool) (more bool) {
	if len(steps) == 0 {
		return fn(trail, v)
	}
	s, rest := steps[0], steps[1:]
	switch v := v.(type) {
	case map[string]any:
		if s.kind == item {
			return true
		}
		names := []string{s.name}
		if s.kind == each {
			names = slices.Sorted(maps.Keys(v))
		}
		for _, name := range names {
			inner, there := v[name]
			if there && !descend(rest, inner, append(trail, segment{name: name}), fn) {
				return false
			}
		}
	case []any:
		first, end := 0, len(v)
		switch s.kind {
		case member:
			return true
		case item:
			if first = s.index; first < 0 {
				first += len(v)
			}
			if end = first + 1; first < 0 || end > len(v) {
				return true
			}
		case each:
		}
		for i := first; i < end; i++ {
			if !descend(rest, v[i], append(trail, segment{index: i, item: true}), fn) {
				return false
			}
		}
	}
	return true
}

// pathOf is the path of one node.
func pathOf(trail []segment) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range trail {
		switch {
		case s.item:
			fmt.Fprintf(&b, "[%d]", s.index)
		case plainName().FindString(s.name) == s.name && s.name != "":
			b.WriteString("." + s.name)
		default:
			b.WriteString(`["` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.name) + `"]`)
		}
	}
	return b.String()
}

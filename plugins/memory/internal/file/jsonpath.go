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

// JSONPath selects nodes of a JSON document: $ is the document, .name and
// ["name"] a member, [0] an item, [-1] the last one, [*] and .* all of them.
// These are the forms of RFC 9535 whose results are bounded by the document.
type JSONPath struct{ steps []step }

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

var (
	// plainName matches a member name that needs no quotes.
	plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL_][\pL\pN_-]*$`) })
	// stepForms matches a step. Its groups are a plain name, an index and the two
	// kinds of quoted names.
	stepForms = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)^(?:\.\*|\[\*\]|\.([\pL_][\pL\pN_-]*)|\[(-?(?:0|[1-9][0-9]{0,8}))\]|\["((?:[^"\\]|\\.)*)"\]|\['((?:[^'\\]|\\.)*)'\])`)
	})
	escaped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\\(.)`) })
)

// ParseJSONPath reads a path. All other forms, such as filters, slices and
// recursive descent, are a validation_error.
func ParseJSONPath(text string) (*JSONPath, error) {
	if len(text) > maxJSONPath || !utf8.ValidString(text) {
		return nil, tea.Errorf(tea.ValidationError, "a JSON path must be UTF-8 of at most %d bytes", maxJSONPath)
	}
	rest, ok := strings.CutPrefix(text, "$")
	p := &JSONPath{}
	for ok && rest != "" {
		var form []string
		if form = stepForms().FindStringSubmatch(rest); form == nil {
			ok = false
			break
		}
		rest = rest[len(form[0]):]
		if p.steps = append(p.steps, stepOf(form)); len(p.steps) > maxJSONSteps {
			return nil, tea.Errorf(tea.ValidationError, "the JSON path %q has more than %d steps", text, maxJSONSteps)
		}
	}
	if !ok {
		at := utf8.RuneCountInString(text) - utf8.RuneCountInString(rest) + 1
		return nil, tea.Errorf(tea.ValidationError, "the JSON path %q is not valid at character %d; a path is $ followed by .name, [\"name\"], [0], [*] or .*", text, at)
	}
	return p, nil
}

func stepOf(form []string) step {
	switch {
	case form[0] == ".*" || form[0] == "[*]":
		return step{kind: each}
	case form[1] != "":
		return step{name: form[1]}
	case form[2] != "":
		index, _ := strconv.Atoi(form[2]) // at most nine digits
		return step{kind: item, index: index}
	}
	return step{name: escaped().ReplaceAllString(form[3]+form[4], "$1")}
}

// Node is a part of a document and its unique path.
type Node struct {
	Path  string
	Value any
}

// segment is a step to one member or item.
type segment struct {
	name  string
	index int
	item  bool
}

// visit calls fn for the selected nodes of a document until fn returns false:
// items in order, members sorted by name. The trail is valid during the call.
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

// pathOf returns the path of one node.
func pathOf(trail []segment) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range trail {
		switch {
		case s.item:
			fmt.Fprintf(&b, "[%d]", s.index)
		case plainName().MatchString(s.name):
			b.WriteString("." + s.name)
		default:
			b.WriteString(`["` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.name) + `"]`)
		}
	}
	return b.String()
}

package spec

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// checker compares a tree with shapes and reports differences. The decoder treats
// what the checker has reported as absent.
type checker struct {
	diags   *diag.List
	grammar *grammar
	where   scope
}

// value checks one value. name is its name in messages, the key.
func (c *checker) value(n *source.Node, path, name string, s *shape) {
	isText, isBool := n.Kind == source.String, n.Kind == source.Bool
	isNumber := n.Kind == source.Int || n.Kind == source.Float
	switch {
	case s.anything:
	case s.duration > 0 && (isNumber || isText):
		c.duration(n, path, name, s)
	case s.text != nil && isText:
		c.enum(n, path, name, s.text, diagcode.ValueNotAllowed)
	case s.text != nil && s.text.scalar && (isNumber || isBool):
	case s.boolean && isBool:
	case s.number != nil && (n.Kind == source.Int || isNumber && !s.number.integer):
		c.bounds(n, path, name, s)
	case s.list != nil && n.Kind == source.List:
		c.elements(n, path, name, s)
	case s.mapping != nil && n.Kind == source.Map:
		c.mapping(n, path, s.mapping, "")
	case s.entries != nil && n.Kind == source.Map:
		c.entries(n, path, name, s)
	default:
		c.errorf(diagcode.WrongType, n, path, typeHint(n, s), "%s: expected %s, got %s", name, s.kinds(), n.Kind)
	}
}

func (c *checker) errorf(code string, n *source.Node, path, hint, format string, args ...any) {
	c.diags.Errorf(code, n.Pos(path), hint, "%s%s", c.where, fmt.Sprintf(format, args...))
}

func (c *checker) zero(n *source.Node, path, name string) {
	c.errorf(diagcode.NumberOutOfRange, n, path, "write a value greater than 0, or remove the key", "%s: %s is not greater than 0", name, n.Text)
}

func (c *checker) duration(n *source.Node, path, name string, s *shape) {
	d, problem := duration(n, s.duration)
	switch {
	case problem == "" && s.positive && d == 0:
		c.zero(n, path, name)
	case problem != "":
		hint := cmp.Or(templateHint(n), "write a number, or a text such as 30s, 500ms or 1m30s")
		c.errorf(diagcode.BadDuration, n, path, hint, "%s: %s", name, problem)
	}
}

// typeHint returns a hint on how to write a value so that it is valid.
func typeHint(n *source.Node, s *shape) string {
	isText := n.Kind == source.String
	switch {
	case s.text != nil && (n.Kind == source.Bool || n.Kind == source.Int || n.Kind == source.Float):
		return fmt.Sprintf("put it in quotes: %q", n.Text)
	case isText && s.boolean && slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(n.Text)):
		return "write true or false"
	case isText && (s.number != nil || s.boolean) && templateHint(n) != "":
		return templateHint(n)
	case isText && s.number != nil && numberShaped(n.Text):
		return "remove the quotes"
	case isText && s.list != nil && s.list.text != nil:
		return fmt.Sprintf("write it as a list: [%s]", n.Text)
	}
	return s.example()
}

func templateHint(n *source.Node) string {
	if n.Kind == source.String && strings.Contains(n.Text, "{{") {
		return "templates work in parameters, items, input, output and conditions, not here"
	}
	return ""
}

func numberShaped(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

func (c *checker) enum(n *source.Node, path, name string, form *textForm, code string) {
	if form.enum == nil || slices.Contains(form.enum, n.Text) {
		return
	}
	hint := diag.Suggest(n.Text, form.enum)
	if hint == "" {
		hint = "use " + alternatives(form.enum)
		if code == diagcode.UnknownNodeType {
			hint += "; for an action, write uses: and its name"
		}
	}
	c.errorf(code, n, path, hint, "%s: %q is not allowed here", name, n.Text)
}

func alternatives(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// bounds checks a number. Without a maximum, it must fit in a 32-bit int.
func (c *checker) bounds(n *source.Node, path, name string, s *shape) {
	form := s.number
	v, ok := value.Float(n.Scalar)
	hint := "write " + form.kind()
	switch {
	case !ok || form.max == nil && v > math.MaxInt32:
		c.errorf(diagcode.NumberOutOfRange, n, path, hint, "%s: %s is too large", name, n.Text)
	case form.max != nil && (v < form.min || v > *form.max):
		c.errorf(diagcode.NumberOutOfRange, n, path, hint, "%s: %s is not between %s and %s", name, n.Text, numeral(form.min), numeral(*form.max))
	case s.positive && v == 0:
		c.zero(n, path, name)
	case v < form.min:
		c.errorf(diagcode.NumberOutOfRange, n, path, hint, "%s: %s is less than %v", name, n.Text, form.min)
	}
}

func (c *checker) elements(n *source.Node, path, name string, s *shape) {
	if len(n.Items) < s.minItems {
		c.errorf(diagcode.MissingKey, n, path, "add at least one element", "%s: the list is empty", name)
	}
	for i, item := range n.Items {
		c.value(item, diag.Index(path, i), diag.Index(name, i), s.list)
	}
}

// entries checks a mapping with free keys. A null entry of named things, as in
// `nodes: {a: }`, is an empty mapping.
func (c *checker) entries(n *source.Node, path, name string, outer *shape) {
	if len(n.Members) < outer.minItems {
		c.errorf(diagcode.MissingKey, n, path, "add at least one entry", "%s: the mapping is empty", name)
	}
	s := outer.entries
	if s.anything {
		return
	}
	for _, m := range n.Members {
		at := diag.Key(path, m.Key.Text)
		switch {
		case m.Value.Kind == source.Null && s.mapping != nil && s.mapping.named:
		case m.Value.Kind == source.Map && s.mapping != nil:
			c.mapping(m.Value, at, s.mapping, m.Key.Text)
		default:
			c.value(m.Value, at, m.Key.Text, s)
		}
	}
}

// mapping checks a mapping with known keys. name is the key of the mapping in a
// surrounding mapping, if any.
func (c *checker) mapping(n *source.Node, path string, s *section, name string) {
	s = s.variant(n)
	outer := c.where
	if s.named {
		c.where = scope{cmp.Or(nameOf(n), name), path}
	}
	params := s.takesParams(n)
	found := make(foundKeys, 0, len(n.Members))
	for _, m := range n.Members {
		k := s.findIn(n, m.Key.Text)
		at := diag.Key(path, m.Key.Text)
		switch {
		case free(m.Key.Text):
		case params && k != nil && k.use == asEither:
		case k == nil || params && k.use == asParam:
			if !params {
				c.unknown(n, m.Key, at, s)
			}
		case found.get(k) != nil:
			c.errorf(diagcode.TwoSpellings, m.Key, at, "keep one of the two", "%s and %s mean the same", found.get(k).Text, m.Key.Text)
		default:
			found = append(found, foundKey{k, m.Key})
			if m.Value.Kind != source.Null || k.shape.anything {
				c.key(m.Value, at, m.Key.Text, k)
				continue
			}
			if k.holdsCode() && m.Value.Cut {
				c.errorf(diagcode.WrongType, m.Key, at, CutHint, "%s has no value: the rest of the line is a comment", m.Key.Text)
			}
			if k.required {
				found = found[:len(found)-1]
			}
		}
	}
	for _, k := range s.keys {
		if k.required && found.get(k) == nil && (k.name != "name" || name == "") {
			c.errorf(diagcode.MissingKey, n, path, "add "+k.name+":", "%s is missing", k.name)
		}
	}
	c.where = outer
}

// foundKeys are the known keys of a mapping, as written.
type foundKeys []foundKey

type foundKey struct {
	key     *key
	written *source.Node
}

// get returns the node of a key, or nil if the mapping does not have it.
func (f foundKeys) get(k *key) *source.Node {
	for _, found := range f {
		if found.key == k {
			return found.written
		}
	}
	return nil
}

func (c *checker) key(v *source.Node, path, name string, k *key) {
	if k.code != "" && v.Kind == source.String && k.shape.text != nil {
		c.enum(v, path, name, k.shape.text, k.code)
		return
	}
	c.value(v, path, name, k.shape)
}

// scope is the named element that is being read: a node or a step.
type scope struct{ name, path string }

// String returns the prefix of messages inside the scope: the node's name, or its
// path if it has no name. It is empty outside of nodes.
func (s scope) String() string {
	switch {
	case s == scope{}:
		return ""
	case s.name == "":
		return s.path + ": "
	}
	return fmt.Sprintf("node %q: ", s.name)
}

// nameOf returns the name inside a node, "" if it has none.
func nameOf(n *source.Node) string {
	name, _ := nameIn(n)
	return name
}

// nameIn is nameOf; ok reports whether there is a name.
func nameIn(n *source.Node) (name string, ok bool) {
	for _, spelling := range []string{"name", "id"} {
		if v := n.Get(spelling); v != nil && v.Kind == source.String {
			return v.Text, true
		}
	}
	return "", false
}

package expr

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Value is a compiled tree of parameters: a value of the value model whose
// strings can be templates. It is immutable and safe for concurrent use.
type Value struct {
	root     part
	constant bool
	refs     []Located
}

// Located is a template inside a [Value] with its path in the tree, such as
// "headers.auth" or "items[0]" ("" for the value itself).
type Located struct {
	Path     string
	Template *Template
}

// part is one value of the tree: a template, a container with templates, or a
// constant.
type part struct {
	constant any
	template *Template
	parts    []part
	names    []string // of the parts of an object; nil for a list
	path     string
}

func (p *part) isConstant() bool { return p.template == nil && p.parts == nil }

// CompileTemplates compiles a tree of parameters, in which isTemplate reports which
// strings are templates. The value shares constant parts of the tree, which must not
// be changed. It reports all mistakes; at returns the position for the path of a
// string in the tree and the line and column inside it, and can be nil. Do not use
// the value if the list has an error.
func CompileTemplates(v any, isTemplate func(path, text string) bool, at func(path string, line, column int) diag.Pos) (*Value, diag.List) {
	c := &compiler{isTemplate: isTemplate, at: at, value: &Value{}}
	c.value.root = c.compile(v, "")
	c.value.constant = c.value.root.isConstant()
	return c.value, c.faults
}

type compiler struct {
	isTemplate func(path, text string) bool
	at         func(path string, line, column int) diag.Pos
	value      *Value
	faults     diag.List
}

func (c *compiler) compile(v any, path string) part {
	switch v := v.(type) {
	case string:
		if c.isTemplate(path, v) {
			return c.template(v, path)
		}
	case []any:
		parts, constant := make([]part, len(v)), true
		for i, e := range v {
			parts[i] = c.compile(e, diag.Index(path, i))
			constant = constant && parts[i].isConstant()
		}
		if !constant {
			return part{parts: parts, path: path}
		}
	case map[string]any:
		names := keys(v)
		parts, constant := make([]part, len(v)), true
		for i, k := range names {
			parts[i] = c.compile(v[k], diag.Key(path, k))
			constant = constant && parts[i].isConstant()
		}
		if !constant {
			return part{parts: parts, names: names, path: path}
		}
	}
	return part{constant: v, path: path}
}

func (c *compiler) template(text, path string) part {
	t, err := Compile(text)
	if err == nil {
		c.value.refs = append(c.value.refs, Located{Path: path, Template: t})
		if strings.HasPrefix(text, "${{") && strings.HasSuffix(text, "}}") && strings.Count(text, "{{") == 1 {
			c.faults.Warnf(diagcode.DollarKept, c.position(path, 1, 1), "write {{ }} without $; for a dollar sign before the value, write {{ '$' ~ value }}",
				"the $ before {{ stays in the text")
		}
		return part{template: t, path: path}
	}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		c.faults.Errorf(diagcode.TemplateSyntax, c.position(path, syntax.Line, syntax.Column), syntax.Hint, "template: %s", syntax.Message)
	}
	return part{constant: text, path: path}
}

func (c *compiler) position(path string, line, column int) diag.Pos {
	if c.at == nil {
		return diag.Pos{Line: line, Column: column, Path: path}
	}
	return c.at(path, line, column)
}

// Constant returns the value if it has no templates.
func (v *Value) Constant() (any, bool) { return v.root.constant, v.constant }

// Templates returns the templates with their paths, in the order of the tree
// with the keys of objects sorted. The slice is shared; the caller must not
// change it.
func (v *Value) Templates() []Located { return v.refs }

// IgnoreSpace returns the value. If it is a template, the white space around it is
// removed; see [Template.IgnoreSpace].
func (v *Value) IgnoreSpace() *Value {
	if v == nil || v.root.template == nil {
		return v
	}
	out := *v
	out.root.template = v.root.template.IgnoreSpace()
	return &out
}

// Static returns the tree with every template replaced by the placeholder, for
// checks that ignore templates. Without templates it is the value itself.
func (v *Value) Static(placeholder any) any {
	result, _ := v.root.build(func(*part) (any, error) { return placeholder, nil })
	return result
}

// Eval evaluates every template. The result shares constant parts with v and
// values with the scope; the caller must not change it. The error has the path
// and wraps an [*EvalError].
func (v *Value) Eval(ctx context.Context, s Scope) (any, error) {
	return v.root.build(func(p *part) (any, error) {
		result, err := p.template.Eval(ctx, s)
		if err != nil && p.path != "" {
			err = fmt.Errorf("evaluate %s: %w", p.path, err)
		}
		return result, err
	})
}

// build copies the tree and replaces each template by its result.
func (p *part) build(result func(*part) (any, error)) (any, error) {
	switch {
	case p.template != nil:
		return result(p)
	case p.names != nil:
		out := make(map[string]any, len(p.parts))
		for i, name := range p.names {
			var err error
			if out[name], err = p.parts[i].build(result); err != nil {
				return nil, err
			}
		}
		return out, nil
	case p.parts != nil:
		out := make([]any, len(p.parts))
		for i := range p.parts {
			var err error
			if out[i], err = p.parts[i].build(result); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return p.constant, nil
}

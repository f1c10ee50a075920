package expr

import (
	"context"
	"errors"
	"fmt"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// Value is a tree of parameters, a value of the value model whose strings may
// be templates, compiled once. It is immutable and safe for concurrent use.
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

// part is one value of the tree: a template, a container that holds one
// somewhere, or a constant.
type part struct {
	constant any
	template *Template
	parts    []part
	names    []string // of the parts of an object; nil for a list
	path     string
}

func (p *part) isConstant() bool { return p.template == nil && p.parts == nil }

// CompileValue compiles a tree of parameters. The tree is kept where it is
// constant and must not be changed. All faults are reported, each at the
// position that at gives for the path of its string in the tree and the line
// and column in there; at may be nil. The value is usable only where the list
// holds no error.
func CompileValue(v any, at func(path string, line, column int) diag.Pos) (*Value, diag.List) {
	c := &compiler{at: at, value: &Value{}}
	c.value.root = c.compile(v, "")
	c.value.constant = c.value.root.isConstant()
	return c.value, c.faults
}

type compiler struct {
	at     func(path string, line, column int) diag.Pos
	value  *Value
	faults diag.List
}

func (c *compiler) compile(v any, path string) part {
	switch v := v.(type) {
	case string:
		if IsTemplate(v) {
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
		return part{template: t, path: path}
	}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		at := diag.Pos{Line: syntax.Line, Column: syntax.Column, Path: path}
		if c.at != nil {
			at = c.at(path, syntax.Line, syntax.Column)
		}
		c.faults.Errorf(diagcode.TemplateSyntax, at, syntax.Hint, "template: %s", syntax.Message)
	}
	return part{constant: text, path: path}
}

// Constant gives the value where it holds no templates.
func (v *Value) Constant() (any, bool) { return v.root.constant, v.constant }

// Templates lists the templates with their paths, in order of the tree with
// the keys of objects sorted. The slice is shared and must not be changed.
func (v *Value) Templates() []Located { return v.refs }

// Static gives the tree with the placeholder in place of every template, for
// checks that must not look at those (a JSON Schema, say). Without templates
// it is the value itself.
func (v *Value) Static(placeholder any) any {
	result, _ := v.root.build(func(*part) (any, error) { return placeholder, nil })
	return result
}

// Eval evaluates every template. Constant parts are shared with the compiled
// value, results may be shared with the scope: neither must be changed. The
// error names the path and is an [*EvalError] inside.
func (v *Value) Eval(ctx context.Context, s Scope) (any, error) {
	return v.root.build(func(p *part) (any, error) {
		result, err := p.template.Eval(ctx, s)
		if err != nil && p.path != "" {
			err = fmt.Errorf("evaluate %s: %w", p.path, err)
		}
		return result, err
	})
}

// build copies the tree with each template replaced by its result.
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

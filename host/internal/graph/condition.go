package graph

import (
	"context"
	"errors"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Condition is a compiled expression: a template if it has braces, else Lua,
// else bare Jinja.
type Condition struct {
	spec.Text
	template *expr.Template
	chunk    *script.Chunk
	// roots are the template roots that a chunk reads as globals.
	roots []string
}

// Eval returns the expression's value. In Lua, the roots of templates, such as
// nodes and result, are globals.
func (c *Condition) Eval(ctx context.Context, scope expr.Scope, env script.Env) (any, error) {
	if c.template != nil {
		return c.template.Eval(ctx, scope)
	}
	env.BareNames = true
	if len(c.roots) > 0 {
		env.Globals = &rootGlobals{outer: env.Globals, scope: scope, roots: c.roots}
	}
	return c.chunk.Run(ctx, env)
}

// rootGlobals are the globals of a Lua condition: those of its environment and the roots
// of templates that it reads.
type rootGlobals struct {
	outer script.Globals
	scope expr.Scope
	roots []string
}

// Lookup returns a global.
func (g *rootGlobals) Lookup(name string) (any, bool) {
	if g.outer != nil {
		if v, ok := g.outer.Lookup(name); ok {
			return v, true
		}
	}
	if !slices.Contains(g.roots, name) {
		return nil, false
	}
	return g.scope.Lookup(name)
}

// IsLua reports whether the expression is Lua.
func (c *Condition) IsLua() bool { return c.chunk != nil }

// condition compiles text, which can be nil, or missing if that is already
// reported.
func (c *compiler) condition(text *spec.Text, roots []string) *Condition {
	if text == nil || text.Pos == (diag.Pos{}) {
		return nil
	}
	cond := &Condition{Text: *text}
	if expr.IsTemplate(text.Value) {
		t, err := expr.Compile(text.Value)
		if err != nil {
			c.templateError(*text, err)
			return nil
		}
		c.readTemplate(*text, t, roots, true)
		// With space around {{ }} the value would be a text, which is always
		// true.
		if cond.template = t.IgnoreSpace(); cond.template.HasText() {
			c.diags.Errorf(diagcode.ConditionSyntax, text.Pos, "write the whole condition in one pair of braces, as {{ state.count > 3 }}, or without braces",
				"the condition has text outside of {{ }}, so it would always be true")
			return nil
		}
		return cond
	}
	if !c.bareCondition(cond) {
		return nil
	}
	if cond.template != nil {
		c.readTemplate(*text, cond.template, roots, true)
		return cond
	}
	c.readLua(*text, cond.chunk)
	for _, ref := range cond.chunk.Globals() {
		switch {
		case slices.Contains(roots, ref.Name):
		case slices.Contains(templateRoots, ref.Name):
			c.readRoot(inChunk(*text, ref.Position), ref.Name, ref.Path)
			if ref.Name != "variables" && !slices.Contains(cond.roots, ref.Name) {
				cond.roots = append(cond.roots, ref.Name)
			}
		default:
			c.reads = append(c.reads, read{key: ref.Name, pos: inChunk(*text, ref.Position)})
		}
	}
	return cond
}

// bareCondition compiles an expression without braces: as Lua if it is Lua,
// else as Jinja.
func (c *compiler) bareCondition(cond *Condition) bool {
	chunk, luaErr := c.env.Lua.CompileExpression(luaSource(cond.Text))
	name := ""
	if luaErr == nil {
		if name = c.foreignConstant(chunk); name == "" {
			cond.chunk = chunk
			return true
		}
	}
	t, jinjaErr := expr.CompileExpression(cond.Value, true)
	switch {
	case jinjaErr == nil:
		cond.template = t
		return true
	case luaErr == nil:
		c.diags.Errorf(diagcode.ConditionSyntax, cond.Pos, "Lua writes true, false and nil",
			"the condition is Lua, which has no %s, and not Jinja (%s)", name, messageOf(jinjaErr))
	default:
		hint := "write a Lua expression (state.count > 3), a Jinja expression, or a template with {{ }}"
		if cond.Cut {
			hint = spec.CutHint
		}
		c.diags.Errorf(diagcode.ConditionSyntax, cond.Pos, hint,
			"the condition is neither Lua (%s) nor Jinja (%s)", messageOf(luaErr), messageOf(jinjaErr))
	}
	return false
}

// foreignConstant finds a constant of Jinja in a valid chunk of Lua: `ready ==
// True` would compare with an undefined global.
func (c *compiler) foreignConstant(chunk *script.Chunk) string {
	for _, ref := range chunk.Globals() {
		if slices.Contains([]string{"True", "False", "None", "null"}, ref.Name) && !c.declares(ref.Name) {
			return ref.Name
		}
	}
	return ""
}

// declares reports whether the file declares a key of the state.
func (c *compiler) declares(name string) bool {
	if _, ok := c.wf.InitialState[name]; ok {
		return true
	}
	return slices.ContainsFunc(c.wf.Schema, func(k spec.Key) bool { return k.Name == name })
}

func luaSource(text spec.Text) script.Source {
	return script.Source{Name: text.File, Line: text.Line, Text: text.Value}
}

// messageOf removes the position, which the diagnostic has.
func messageOf(err error) string {
	var lua *script.SyntaxError
	if errors.As(err, &lua) {
		return lua.Message
	}
	var jinja *expr.SyntaxError
	if errors.As(err, &jinja) {
		return jinja.Message
	}
	return err.Error()
}

func (c *compiler) templateError(text spec.Text, err error) {
	pos, hint := text.Pos, ""
	var syntax *expr.SyntaxError
	if errors.As(err, &syntax) {
		pos, hint = text.At(syntax.Line, syntax.Column), syntax.Hint
	}
	c.diags.Errorf(diagcode.TemplateSyntax, pos, hint, "template: %s", messageOf(err))
}

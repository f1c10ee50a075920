package graph

import (
	"context"
	"errors"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// Condition is a compiled expression: a template where it has braces, else
// Lua, else bare Jinja.
type Condition struct {
	spec.Text
	template *expr.Template
	chunk    *script.Chunk
}

// Eval gives the expression's value.
func (c *Condition) Eval(ctx context.Context, scope expr.Scope, env script.Env) (any, error) {
	if c.template != nil {
		return c.template.Eval(ctx, scope)
	}
	env.BareNames = true
	return c.chunk.Run(ctx, env)
}

// IsLua tells which language the expression turned out to be.
func (c *Condition) IsLua() bool { return c.chunk != nil }

// Template is the compiled template, nil for Lua.
func (c *Condition) Template() *expr.Template { return c.template }

// compileCondition compiles text, which may be nil. multiline allows a whole
// Lua chunk, as the condition of a switch edge may be.
func compileCondition(lua *script.Runtime, text *spec.Text, diags *diag.List) *Condition {
	if text == nil {
		return nil
	}
	c := &Condition{Text: *text}
	if expr.IsTemplate(text.Value) {
		t, err := expr.Compile(text.Value)
		if err != nil {
			templateError(*text, err, diags)
			return nil
		}
		c.template = t
		return c
	}
	chunk, luaErr := lua.CompileExpression(luaSource(*text))
	if luaErr == nil {
		c.chunk = chunk
		return c
	}
	t, jinjaErr := expr.CompileExpression(text.Value, true)
	if jinjaErr == nil {
		c.template = t
		return c
	}
	diags.Errorf(diagcode.ConditionSyntax, text.Pos,
		"write a Lua expression (state.count > 3), a Jinja expression, or a template with {{ }}",
		"the condition is neither Lua (%s) nor Jinja (%s)", messageOf(luaErr), messageOf(jinjaErr))
	return nil
}

func luaSource(text spec.Text) script.Source {
	return script.Source{Name: text.File, Line: text.Line, Text: text.Value}
}

// messageOf strips the position, which the diagnostic carries itself.
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

func templateError(text spec.Text, err error, diags *diag.List) {
	pos, hint := text.Pos, ""
	var syntax *expr.SyntaxError
	if errors.As(err, &syntax) {
		pos, hint = text.At(syntax.Line, syntax.Column), syntax.Hint
	}
	diags.Errorf(diagcode.TemplateSyntax, pos, hint, "template: %s", messageOf(err))
}

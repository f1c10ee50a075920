package expr

import (
	"context"
	"fmt"
	"strings"
)

// Scope gives the values of the root names: state, variables, nodes, item,
// result and so on. Values are in the value model, shared, and never changed.
type Scope interface {
	Lookup(name string) (any, bool)
}

// maxText is the length a template may have, and the text it may produce.
const maxText = 16 << 20

// FieldFinder is a [Scope] that finds root.key by itself, before Lookup is
// asked for the whole root: because that is cheaper, or because the root has
// fields beyond those of its value.
type FieldFinder interface {
	Field(root, key string) (any, bool)
}

// Template is a compiled text or expression. It is immutable and safe for
// concurrent use.
type Template struct {
	text   string
	body   []statement
	single node // the value of a template that is one expression
	bare   bool // names that are no root are keys of the state
	plain  bool // nothing but text and look-ups: needs no run
	refs   []Ref
}

// IsTemplate tells whether a text holds anything to evaluate.
func IsTemplate(text string) bool { return nextTag(text, 0) >= 0 }

// Compile compiles a text with {{ }}, {% %} or {# #}; a text without them is
// a template that gives itself. The error is a [*SyntaxError].
func Compile(text string) (*Template, error) {
	if len(text) > maxText {
		return nil, &SyntaxError{Line: 1, Column: 1, Message: fmt.Sprintf("the text has more than %d MiB", maxText>>20)}
	}
	tokens, err := lexTemplate(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens}
	body, _, err := p.body()
	if err != nil {
		return nil, err
	}
	if err := p.checkCalls(); err != nil {
		return nil, err
	}
	t := &Template{text: text, body: body, refs: references(text, body)}
	t.single = singleOutput(body)
	t.plain = isPlain(body)
	return t, nil
}

// CompileExpression compiles an expression without braces, such as
// `state.items | length > 2` or `!ready`. With bareNames a name that is no
// root is looked up in the state. The error is a [*SyntaxError].
func CompileExpression(text string, bareNames bool) (*Template, error) {
	tokens, err := lexExpression(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens}
	e, err := p.tuple(p.expression)
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tokenEOF {
		return nil, p.unexpected("the end of the expression")
	}
	if err := p.checkCalls(); err != nil {
		return nil, err
	}
	body := []statement{&output{value: e}}
	return &Template{
		text: text, body: body, single: e, bare: bareNames,
		plain: isPlain(body), refs: references(text, body),
	}, nil
}

// singleOutput is the expression of a template that is one {{ expr }}. A
// newline behind it, which a YAML block scalar leaves, does not count.
func singleOutput(body []statement) node {
	if len(body) == 2 {
		if t, ok := body[1].(*text); ok && strings.TrimRight(t.value, "\r\n") == "" {
			body = body[:1]
		}
	}
	if len(body) != 1 {
		return nil
	}
	if o, ok := body[0].(*output); ok {
		return o.value
	}
	return nil
}

// isPlain tells whether a body is made of text, look-ups and literals only.
func isPlain(body []statement) bool {
	for _, s := range body {
		switch s := s.(type) {
		case *text:
		case *output:
			switch s.value.(type) {
			case *path, *literal:
			default:
				return false
			}
		default:
			return false
		}
	}
	return true
}

// Text is what was compiled.
func (t *Template) Text() string { return t.text }

// Roots lists what the template reads, in the order written, for static
// checks. The slice is shared and must not be changed.
func (t *Template) Roots() []Ref { return t.refs }

// Eval evaluates the template. One single {{ expr }} keeps the value's type,
// anything else gives a string. The result may share lists and objects with
// the scope. The error is an [*EvalError]; it unwraps to the context's error
// where the context ended the evaluation.
func (t *Template) Eval(ctx context.Context, s Scope) (any, error) {
	if t.plain {
		return t.evalPlain(s)
	}
	return t.evalRun(ctx, s)
}

func (t *Template) evalPlain(s Scope) (any, error) {
	switch n := t.single.(type) {
	case *path:
		return known(n.lookup(s, t.bare)), nil
	case *literal:
		return n.value, nil
	}
	if len(t.body) == 1 {
		if only, ok := t.body[0].(*text); ok {
			return only.value, nil
		}
	}
	var buf [256]byte
	out := buf[:0]
	for _, st := range t.body {
		var v any
		switch st := st.(type) {
		case *text:
			out = append(out, st.value...)
			continue
		case *output:
			switch n := st.value.(type) {
			case *path:
				v = n.lookup(s, t.bare)
			case *literal:
				v = n.value
			}
		}
		var err error
		if out, err = appendText(out, v); err != nil {
			return nil, t.failure(0, "", err)
		}
	}
	return string(out), nil
}

func (t *Template) evalRun(ctx context.Context, s Scope) (result any, err error) {
	r := &run{ctx: ctx, scope: s, template: t, vars: &frame{}}
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, t.failure(0, "", fmt.Errorf("internal error: %v", p))
		}
	}()
	if err := r.alive(); err != nil {
		return nil, r.wrap(0, err)
	}
	if t.single == nil {
		if err := r.body(t.body); err != nil {
			return nil, err
		}
		return string(r.out), nil
	}
	v, err := t.single.eval(r)
	if err != nil {
		return nil, err
	}
	if v, err = export(v); err != nil {
		return nil, t.failure(0, "", err)
	}
	return v, nil
}

// failure is the error at a byte offset of the template.
func (t *Template) failure(pos int, hint string, err error) *EvalError {
	line, column := lineColumn(t.text, pos)
	return &EvalError{Line: line, Column: column, Message: err.Error(), Hint: hint, Err: err}
}

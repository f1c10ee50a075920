package expr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Scope has the values of the root names, such as state, variables, nodes, item
// and result. Values are in the value model, shared, and never changed.
type Scope interface {
	Lookup(name string) (any, bool)
}

// maxText bounds the length of a template and of its text.
const maxText = 16 << 20

// FieldFinder is an optional interface of a [Scope] that looks up root.key directly,
// before Lookup of the whole root: because that is cheaper, or because the root has
// more fields than its value.
type FieldFinder interface {
	Field(root, key string) (any, bool)
}

// Template is a compiled text or expression. It is immutable and safe for
// concurrent use.
type Template struct {
	text   string
	body   []statement
	single node // the value of a template that is one expression
	bare   bool // names that are not roots are keys of the state
	plain  bool // only text and look-ups: needs no run
	refs   []Ref
}

// IsTemplate reports whether a text contains template syntax.
func IsTemplate(text string) bool { return nextTag(text, 0) >= 0 }

// Compile compiles a text with {{ }}, {% %} or {# #}; a text without them
// evaluates to itself. The error is a [*SyntaxError].
func Compile(text string) (t *Template, err error) {
	if len(text) > maxText {
		return nil, &SyntaxError{Line: 1, Column: 1, Message: fmt.Sprintf("the text has more than %d MiB", maxText>>20)}
	}
	defer catchSyntax(&err)
	p := &parser{text: text, tokens: lexTemplate(text)}
	body, _ := p.body()
	p.checkCalls()
	return &Template{text: text, body: body, single: singleOutput(body), plain: isPlain(body), refs: references(text, body)}, nil
}

// catchSyntax recovers the error of a parser.
func catchSyntax(err *error) {
	switch p := recover().(type) {
	case nil:
	case *SyntaxError:
		*err = p
	default:
		panic(p)
	}
}

// CompileExpression compiles an expression without braces, such as `state.items
// | length > 2` or `!ready`. With bareNames, a name that is not a root is
// looked up in the state. The error is a [*SyntaxError].
func CompileExpression(text string, bareNames bool) (t *Template, err error) {
	defer catchSyntax(&err)
	p := &parser{text: text, tokens: lexExpression(text)}
	e := p.tuple(p.expression)
	if p.peek().kind != tokenEOF {
		panic(p.unexpected("the end of the expression"))
	}
	p.checkCalls()
	body := []statement{&output{value: e}}
	return &Template{text: text, body: body, single: e, bare: bareNames, plain: isPlain(body), refs: references(text, body)}, nil
}

// IgnoreSpace returns the template without leading and trailing white space, so that an
// {{ expr }} on its own line counts as a single expression.
func (t *Template) IgnoreSpace() *Template {
	out := *t
	for trimmed := false; len(out.body) > 0 && !trimmed; {
		trimmed = out.trim(0, strings.TrimLeftFunc)
	}
	for trimmed := false; len(out.body) > 0 && !trimmed; {
		trimmed = out.trim(len(out.body)-1, strings.TrimRightFunc)
	}
	out.single = singleOutput(out.body)
	return &out
}

// HasText reports whether the value of a template is text because there is some beside
// an {{ expr }}.
func (t *Template) HasText() bool {
	var texts, outputs int
	for _, s := range t.body {
		switch s.(type) {
		case *text:
			texts++
		case *output:
			outputs++
		}
	}
	return texts > 0 && outputs > 0 && texts+outputs == len(t.body)
}

// trim cuts white space from the statement at i if it is text, and reports whether
// anything is left of it.
func (t *Template) trim(i int, cut func(string, func(rune) bool) string) bool {
	s, ok := t.body[i].(*text)
	if !ok {
		return true
	}
	rest := cut(s.value, unicode.IsSpace)
	if rest == "" {
		t.body = slices.Delete(slices.Clone(t.body), i, i+1)
		return false
	}
	t.body = slices.Clone(t.body)
	t.body[i] = &text{value: rest}
	return true
}

// singleOutput returns the expression of a template that consists of one {{ expr }}.
func singleOutput(body []statement) node {
	if len(body) != 1 {
		return nil
	}
	if o, ok := body[0].(*output); ok {
		return o.value
	}
	return nil
}

// isPlain reports whether a body has only text, look-ups and literals.
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

// Text returns the compiled text.
func (t *Template) Text() string { return t.text }

// Roots returns the names that the template reads, in the order written, for
// static checks. The slice is shared; the caller must not change it.
func (t *Template) Roots() []Ref { return t.refs }

// Eval evaluates the template. A single {{ expr }} keeps the value's type,
// anything else returns a string. The result can share lists and objects with
// the scope. The error is an [*EvalError], which unwraps to the context's error
// if the context ended the evaluation.
func (t *Template) Eval(ctx context.Context, s Scope) (result any, err error) {
	if t.plain {
		pos := 0
		defer t.catch(&pos, &err)
		return t.evalPlain(s), nil
	}
	r := &run{ctx: ctx, scope: s, template: t, vars: &frame{}}
	defer t.catch(&r.pos, &err)
	r.alive()
	if t.single != nil {
		v := t.single.eval(r)
		r.pos = 0
		return export(v), nil
	}
	r.body(t.body)
	return string(r.out), nil
}

func (t *Template) evalPlain(s Scope) any {
	switch n := t.single.(type) {
	case *path:
		return known(n.find(t, s))
	case *literal:
		return n.value
	}
	if len(t.body) == 1 {
		if only, ok := t.body[0].(*text); ok {
			return only.value
		}
	}
	var buf [256]byte
	out := buf[:0]
	for _, st := range t.body {
		switch st := st.(type) {
		case *text:
			out = append(out, st.value...)
		case *output:
			switch n := st.value.(type) {
			case *path:
				out = appendText(out, n.find(t, s))
			case *literal:
				out = appendText(out, n.value)
			}
		}
	}
	return string(out)
}

// catch recovers the error of an evaluation. A failure without a position gets
// the position of the failed operation.
func (t *Template) catch(pos *int, err *error) {
	switch p := recover().(type) {
	case nil:
	case *EvalError:
		*err = p
	case failure:
		*err = t.failure(*pos, p)
	default:
		*err = t.failure(0, failf("internal error: %v", p))
	}
}

// failure returns the error at a byte offset of the template.
func (t *Template) failure(pos int, f failure) *EvalError {
	line, column := lineColumn(t.text, pos)
	return &EvalError{Line: line, Column: column, Message: f.err.Error(), Hint: f.hint, Err: f.err}
}

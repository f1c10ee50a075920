package expr

import (
	"fmt"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// maxNesting bounds the nesting of brackets, operators and blocks.
const maxNesting = 100

// parser builds the tree, with Jinja2's grammar and precedence. Its methods, and
// those of the lexer, panic with a *SyntaxError, which Compile recovers.
type parser struct {
	text   string
	tokens []token
	next   int
	depth  int
	loops  int
	calls  []call // every name(...), checked after all macros are parsed
	bound  map[string]bool
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokenEOF {
		p.next++
	}
	return t
}

// isOperator reports whether the next token is that operator.
func (p *parser) isOperator(op string) bool {
	t := p.peek()
	return t.kind == tokenOperator && t.text == op
}

func (p *parser) isName(name string) bool {
	t := p.peek()
	return t.kind == tokenName && t.text == name
}

func (p *parser) skipOperator(op string) bool {
	if p.isOperator(op) {
		p.next++
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.next++
		return true
	}
	return false
}

func (p *parser) expectOperator(op string) {
	if !p.skipOperator(op) {
		panic(p.unexpected(fmt.Sprintf("%q", op)))
	}
}

func (p *parser) expectName(what string) string {
	if t := p.peek(); t.kind == tokenName {
		p.next++
		return t.text
	}
	panic(p.unexpected(what))
}

// unexpected returns the error for a next token other than wanted.
func (p *parser) unexpected(wanted string) *SyntaxError {
	t := p.peek()
	got := fmt.Sprintf("%q", t.text)
	switch t.kind {
	case tokenEOF:
		got = "the end"
	case tokenOutputClose, tokenBlockClose:
		got = t.text
	}
	return p.errorf(t.pos, "", "expected %s, found %s", wanted, got)
}

func (p *parser) errorf(pos int, hint, format string, args ...any) *SyntaxError {
	line, column := lineColumn(p.text, pos)
	return &SyntaxError{Line: line, Column: column, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// enter counts one level of nesting.
func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		panic(p.errorf(p.peek().pos, "", "nested deeper than %d levels", maxNesting))
	}
}

func (p *parser) leave() { p.depth-- }

// checkCalls reports calls of names that are neither macros nor functions.
func (p *parser) checkCalls() {
	for _, c := range p.calls {
		if _, ok := functions()[c.name]; !ok && !p.bound[c.name] {
			panic(p.errorf(c.pos, diag.Suggest(c.name, keys(functions())), "unknown function %q", c.name))
		}
	}
}

func (p *parser) bind(names ...string) {
	if p.bound == nil {
		p.bound = map[string]bool{}
	}
	for _, name := range names {
		p.bound[name] = true
	}
}

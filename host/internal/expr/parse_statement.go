package expr

import (
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// body parses statements up to one of the block tags named in ends, whose name
// it consumes; without ends it parses to the end of the text.
func (p *parser) body(ends ...string) ([]statement, string, error) {
	if err := p.enter(); err != nil {
		return nil, "", err
	}
	defer func() { p.depth-- }()
	var body []statement
	for {
		t := p.take()
		switch t.kind {
		case tokenEOF:
			if len(ends) > 0 {
				return nil, "", p.errorf(t.pos, "", "{%% %s %%} is missing", ends[len(ends)-1])
			}
			return body, "", nil
		case tokenText:
			body = append(body, &text{value: t.text})
		case tokenOutputOpen:
			e, err := p.tuple(p.expression)
			if err != nil {
				return nil, "", err
			}
			if p.peek().kind != tokenOutputClose {
				return nil, "", p.unexpected("}}")
			}
			p.next++
			body = append(body, &output{value: e, pos: t.pos})
		default:
			tag := p.peek()
			name, err := p.expectName("the name of a statement")
			if err != nil {
				return nil, "", err
			}
			if slices.Contains(ends, name) {
				return body, name, nil
			}
			s, err := p.statement(tag, ends)
			if err != nil {
				return nil, "", err
			}
			body = append(body, s)
		}
	}
}

// close parses the end of a block tag.
func (p *parser) close() error {
	if p.peek().kind != tokenBlockClose {
		return p.unexpected("%}")
	}
	p.next++
	return nil
}

// closedBody parses `%} body {% end %}`.
func (p *parser) closedBody(end string) ([]statement, error) {
	if err := p.close(); err != nil {
		return nil, err
	}
	body, _, err := p.body(end)
	if err != nil {
		return nil, err
	}
	return body, p.close()
}

var statementNames = []string{"if", "for", "set", "macro", "call", "filter", "with", "do", "block", "autoescape", "raw", "break", "continue"}

func (p *parser) statement(tag token, ends []string) (statement, error) {
	switch tag.text {
	case "if":
		return p.ifStatement()
	case "for":
		return p.forStatement(tag)
	case "set":
		return p.setStatement(tag)
	case "macro":
		return p.macroStatement(tag)
	case "call":
		return p.callBlock(tag)
	case "filter":
		return p.filterBlock(tag)
	case "with":
		return p.withStatement()
	case "do":
		e, err := p.tuple(p.expression)
		if err != nil {
			return nil, err
		}
		return &do{value: e}, p.close()
	case "block", "autoescape":
		return p.group(tag)
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.errorf(tag.pos, "", "%s outside of a loop", tag.text)
		}
		return &loopControl{stop: tag.text == "break"}, p.close()
	case "include", "import", "from", "extends":
		return nil, p.errorf(tag.pos, "define a macro in the same text instead",
			"%q is not available: a template cannot read other files", tag.text)
	}
	hint := diag.Suggest(tag.text, statementNames)
	if len(ends) > 0 && (strings.HasPrefix(tag.text, "end") || tag.text == "else" || tag.text == "elif") {
		hint = "the open block ends with {% " + ends[len(ends)-1] + " %}"
	}
	return nil, p.errorf(tag.pos, hint, "unknown statement %q", tag.text)
}

func (p *parser) ifStatement() (statement, error) {
	s := &ifStatement{}
	for tag := "if"; tag != "endif"; {
		if tag == "else" {
			var err error
			s.otherwise, err = p.closedBody("endif")
			return s, err
		}
		condition, err := p.tuple(p.expression)
		if err != nil {
			return nil, err
		}
		if err := p.close(); err != nil {
			return nil, err
		}
		body, end, err := p.body("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.branches = append(s.branches, ifBranch{condition: condition, body: body})
		tag = end
	}
	return s, p.close()
}

// targets parses the names that a loop or an assignment binds.
func (p *parser) targets() (names []string, isTuple bool, err error) {
	brackets := p.skipOperator("(")
	for {
		name, err := p.expectName("a name")
		if err != nil {
			return nil, false, err
		}
		names = append(names, name)
		if !p.skipOperator(",") {
			break
		}
		isTuple = true
		if p.peek().kind != tokenName || p.isName("in") {
			break
		}
	}
	p.bind(names...)
	if brackets {
		err = p.expectOperator(")")
	}
	return names, isTuple, err
}

func (p *parser) forStatement(tag token) (statement, error) {
	s := &forStatement{pos: tag.pos}
	var err error
	if s.targets, s.isTuple, err = p.targets(); err != nil {
		return nil, err
	}
	if !p.skipName("in") {
		return nil, p.unexpected(`"in"`)
	}
	if s.items, err = p.tuple(p.or); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if s.condition, err = p.expression(); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skipName("recursive")
	p.bind("loop")
	if err := p.close(); err != nil {
		return nil, err
	}
	p.loops++
	body, end, err := p.body("else", "endfor")
	p.loops--
	if err != nil {
		return nil, err
	}
	s.body = body
	if end == "else" {
		s.otherwise, err = p.closedBody("endfor")
		return s, err
	}
	return s, p.close()
}

func (p *parser) setStatement(tag token) (statement, error) {
	s := &setStatement{pos: tag.pos}
	var err error
	if s.targets, s.isTuple, err = p.targets(); err != nil {
		return nil, err
	}
	if !s.isTuple && p.skipOperator(".") {
		if s.attribute, err = p.expectName("a name after the dot"); err != nil {
			return nil, err
		}
	}
	if p.skipOperator("=") {
		if s.value, err = p.tuple(p.expression); err != nil {
			return nil, err
		}
		return s, p.close()
	}
	if s.isTuple || s.attribute != "" {
		return nil, p.unexpected(`"="`)
	}
	block := &setBlock{target: s.targets[0]}
	if block.filters, err = p.filterChain(); err != nil {
		return nil, err
	}
	block.body, err = p.closedBody("endset")
	return block, err
}

// filterChain parses | a | b of a block.
func (p *parser) filterChain() ([]filtered, error) {
	var chain []filtered
	for p.isOperator("|") {
		f, err := p.filter(nil)
		if err != nil {
			return nil, err
		}
		chain = append(chain, *f)
	}
	return chain, nil
}

func (p *parser) filterBlock(tag token) (statement, error) {
	p.next-- // the first filter of the chain has no pipe before it
	first, err := p.filter(nil)
	if err != nil {
		return nil, err
	}
	rest, err := p.filterChain()
	if err != nil {
		return nil, err
	}
	s := &filterBlock{filters: append([]filtered{*first}, rest...), pos: tag.pos}
	s.body, err = p.closedBody("endfilter")
	return s, err
}

func (p *parser) withStatement() (statement, error) {
	s := &withStatement{}
	for p.peek().kind != tokenBlockClose {
		if len(s.names) > 0 {
			if err := p.expectOperator(","); err != nil {
				return nil, err
			}
		}
		name, err := p.expectName("a name")
		if err != nil {
			return nil, err
		}
		if err := p.expectOperator("="); err != nil {
			return nil, err
		}
		v, err := p.expression()
		if err != nil {
			return nil, err
		}
		p.bind(name)
		s.names, s.values = append(s.names, name), append(s.values, v)
	}
	var err error
	s.body, err = p.closedBody("endwith")
	return s, err
}

func (p *parser) group(tag token) (statement, error) {
	for p.peek().kind != tokenBlockClose && p.peek().kind != tokenEOF {
		p.next++
	}
	body, err := p.closedBody("end" + tag.text)
	if err != nil {
		return nil, err
	}
	return &group{body: body}, nil
}

func (p *parser) macroStatement(tag token) (statement, error) {
	name, err := p.expectName("the name of the macro")
	if err != nil {
		return nil, err
	}
	p.bind(name, "caller")
	m := &macroStatement{name: name, pos: tag.pos}
	if err := p.parameters(m); err != nil {
		return nil, err
	}
	m.body, err = p.macroBody("endmacro")
	return m, err
}

// macroBody parses a body in which break and continue of a surrounding loop are
// not valid.
func (p *parser) macroBody(end string) ([]statement, error) {
	loops := p.loops
	p.loops = 0
	body, err := p.closedBody(end)
	p.loops = loops
	return body, err
}

func (p *parser) parameters(m *macroStatement) error {
	if err := p.expectOperator("("); err != nil {
		return err
	}
	for !p.skipOperator(")") {
		if len(m.params) > 0 {
			if err := p.expectOperator(","); err != nil {
				return err
			}
		}
		name, err := p.expectName("a parameter")
		if err != nil {
			return err
		}
		var fallback node
		if p.skipOperator("=") {
			if fallback, err = p.expression(); err != nil {
				return err
			}
		}
		p.bind(name)
		m.params, m.defaults = append(m.params, name), append(m.defaults, fallback)
	}
	return nil
}

func (p *parser) callBlock(tag token) (statement, error) {
	s := &callBlock{body: &macroStatement{name: "caller", pos: tag.pos}, pos: tag.pos}
	if p.isOperator("(") {
		if err := p.parameters(s.body); err != nil {
			return nil, err
		}
	}
	var err error
	if s.call, err = p.unary(false); err != nil {
		return nil, err
	}
	if _, ok := s.call.(*call); !ok {
		return nil, p.errorf(tag.pos, "", "a call block needs a call of a macro")
	}
	s.body.body, err = p.macroBody("endcall")
	return s, err
}

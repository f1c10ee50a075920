package expr

import (
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// body parses statements up to one of the block tags named in ends, whose name
// it consumes; without ends it parses to the end of the text.
func (p *parser) body(ends ...string) ([]statement, string) {
	p.enter()
	defer p.leave()
	var body []statement
	for {
		t := p.take()
		switch t.kind {
		case tokenEOF:
			if len(ends) > 0 {
				panic(p.errorf(t.pos, "", "{%% %s %%} is missing", ends[len(ends)-1]))
			}
			return body, ""
		case tokenText:
			body = append(body, &text{value: t.text})
		case tokenOutputOpen:
			e := p.tuple(p.expression)
			if p.peek().kind != tokenOutputClose {
				panic(p.unexpected("}}"))
			}
			p.next++
			body = append(body, &output{value: e, pos: t.pos})
		default:
			tag := p.peek()
			name := p.expectName("the name of a statement")
			if slices.Contains(ends, name) {
				return body, name
			}
			body = append(body, p.statement(tag, ends))
		}
	}
}

// close parses the end of a block tag.
func (p *parser) close() {
	if p.peek().kind != tokenBlockClose {
		panic(p.unexpected("%}"))
	}
	p.next++
}

// closedBody parses `%} body {% end %}`.
func (p *parser) closedBody(end string) []statement {
	p.close()
	body, _ := p.body(end)
	p.close()
	return body
}

var statementNames = []string{"if", "for", "set", "macro", "call", "filter", "with", "do", "block", "autoescape", "raw", "break", "continue"}

func (p *parser) statement(tag token, ends []string) statement {
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
		e := p.tuple(p.expression)
		p.close()
		return &do{value: e}
	case "block", "autoescape":
		return p.group(tag)
	case "break", "continue":
		if p.loops == 0 {
			panic(p.errorf(tag.pos, "", "%s outside of a loop", tag.text))
		}
		p.close()
		return &loopControl{to: map[string]jump{"break": breakLoop, "continue": continueLoop}[tag.text]}
	case "include", "import", "from", "extends":
		panic(p.errorf(tag.pos, "define a macro in the same text instead",
			"%q is not available: a template cannot read other files", tag.text))
	}
	hint := diag.Suggest(tag.text, statementNames)
	if len(ends) > 0 && (strings.HasPrefix(tag.text, "end") || tag.text == "else" || tag.text == "elif") {
		hint = "the open block ends with {% " + ends[len(ends)-1] + " %}"
	}
	panic(p.errorf(tag.pos, hint, "unknown statement %q", tag.text))
}

func (p *parser) ifStatement() statement {
	s := &ifStatement{}
	for tag := "if"; tag != "endif"; {
		if tag == "else" {
			s.otherwise = p.closedBody("endif")
			return s
		}
		condition := p.tuple(p.expression)
		p.close()
		body, end := p.body("elif", "else", "endif")
		s.branches = append(s.branches, ifBranch{condition: condition, body: body})
		tag = end
	}
	p.close()
	return s
}

// targets parses the names that a loop or an assignment binds.
func (p *parser) targets() (names []string, isTuple bool) {
	brackets := p.skipOperator("(")
	for {
		names = append(names, p.expectName("a name"))
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
		p.expectOperator(")")
	}
	return names, isTuple
}

func (p *parser) forStatement(tag token) statement {
	s := &forStatement{pos: tag.pos}
	s.targets, s.isTuple = p.targets()
	if !p.skipName("in") {
		panic(p.unexpected(`"in"`))
	}
	s.items = p.tuple(p.or)
	if p.skipName("if") {
		s.condition = p.expression()
	}
	s.recursive = p.skipName("recursive")
	p.bind("loop")
	p.close()
	p.loops++
	body, end := p.body("else", "endfor")
	p.loops--
	s.body = body
	if end == "else" {
		s.otherwise = p.closedBody("endfor")
		return s
	}
	p.close()
	return s
}

func (p *parser) setStatement(tag token) statement {
	s := &setStatement{pos: tag.pos}
	s.targets, s.isTuple = p.targets()
	if !s.isTuple && p.skipOperator(".") {
		s.attribute = p.expectName("a name after the dot")
	}
	if p.skipOperator("=") {
		s.value = p.tuple(p.expression)
		p.close()
		return s
	}
	if s.isTuple || s.attribute != "" {
		panic(p.unexpected(`"="`))
	}
	filters := p.filterChain()
	return &setBlock{target: s.targets[0], filters: filters, body: p.closedBody("endset")}
}

// filterChain parses | a | b of a block.
func (p *parser) filterChain() []filtered {
	var chain []filtered
	for p.isOperator("|") {
		chain = append(chain, *p.filter(nil))
	}
	return chain
}

func (p *parser) filterBlock(tag token) statement {
	p.next-- // the first filter of the chain has no pipe before it
	filters := append([]filtered{*p.filter(nil)}, p.filterChain()...)
	return &filterBlock{filters: filters, body: p.closedBody("endfilter"), pos: tag.pos}
}

func (p *parser) withStatement() statement {
	s := &withStatement{}
	for p.peek().kind != tokenBlockClose {
		if len(s.names) > 0 {
			p.expectOperator(",")
		}
		name := p.expectName("a name")
		p.expectOperator("=")
		v := p.expression()
		p.bind(name)
		s.names, s.values = append(s.names, name), append(s.values, v)
	}
	s.body = p.closedBody("endwith")
	return s
}

func (p *parser) group(tag token) statement {
	for p.peek().kind != tokenBlockClose && p.peek().kind != tokenEOF {
		p.next++
	}
	return &group{body: p.closedBody("end" + tag.text)}
}

func (p *parser) macroStatement(tag token) statement {
	name := p.expectName("the name of the macro")
	p.bind(name, "caller")
	m := &macroStatement{name: name, pos: tag.pos}
	p.parameters(m)
	m.body = p.macroBody("endmacro")
	return m
}

// macroBody parses a body in which break and continue of a surrounding loop are
// not valid.
func (p *parser) macroBody(end string) []statement {
	loops := p.loops
	p.loops = 0
	body := p.closedBody(end)
	p.loops = loops
	return body
}

func (p *parser) parameters(m *macroStatement) {
	p.expectOperator("(")
	for !p.skipOperator(")") {
		if len(m.params) > 0 {
			p.expectOperator(",")
		}
		name := p.expectName("a parameter")
		var fallback node
		if p.skipOperator("=") {
			fallback = p.expression()
		}
		p.bind(name)
		m.params, m.defaults = append(m.params, name), append(m.defaults, fallback)
	}
}

func (p *parser) callBlock(tag token) statement {
	s := &callBlock{body: &macroStatement{name: "caller", pos: tag.pos}, pos: tag.pos}
	if p.isOperator("(") {
		p.parameters(s.body)
	}
	s.call = p.unary(false)
	if _, ok := s.call.(*call); !ok {
		panic(p.errorf(tag.pos, "", "a call block needs a call of a macro"))
	}
	s.body.body = p.macroBody("endcall")
	return s
}

package expr

import (
	"encoding/json"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/python"
)

// expression parses a full expression: `a if b else c`.
func (p *parser) expression() node {
	p.enter()
	defer p.leave()
	result := p.or()
	for p.skipName("if") {
		c := &conditional{then: result, condition: p.or()}
		if p.skipName("else") {
			c.otherwise = p.expression()
		}
		result = c
	}
	return result
}

// tuple parses an expression, or several with commas, which make a list.
func (p *parser) tuple(element func() node) node {
	first := element()
	if !p.isOperator(",") {
		return first
	}
	list := &listLiteral{elements: []node{first}, pos: p.peek().pos}
	for p.skipOperator(",") {
		if p.atExpressionEnd() {
			break
		}
		list.elements = append(list.elements, element())
	}
	return list
}

func (p *parser) atExpressionEnd() bool {
	switch t := p.peek(); t.kind {
	case tokenEOF, tokenBlockClose, tokenOutputClose:
		return true
	case tokenOperator:
		return t.text == ")" || t.text == "]" || t.text == "}" || t.text == "="
	}
	return false
}

func (p *parser) or() node {
	left := p.and()
	for p.skipName("or") || p.skipOperator("||") {
		left = &logical{or: true, left: left, right: p.and()}
	}
	return left
}

func (p *parser) and() node {
	left := p.not()
	for p.skipName("and") || p.skipOperator("&&") {
		left = &logical{left: left, right: p.not()}
	}
	return left
}

func (p *parser) not() node {
	if !p.isName("not") {
		return p.compare()
	}
	p.enter()
	defer p.leave()
	p.next++
	return &negation{term: p.not()}
}

var comparisonOperators = []string{"==", "!=", "<", "<=", ">", ">="}

func (p *parser) compare() node {
	first := p.sum()
	c := &comparison{first: first}
	for {
		t := p.peek()
		op := ""
		switch {
		case t.kind == tokenOperator && slices.Contains(comparisonOperators, t.text):
			op = t.text
			p.next++
		case p.skipName("in"):
			op = "in"
		case p.isName("not") && p.tokens[p.next+1].kind == tokenName && p.tokens[p.next+1].text == "in":
			op = "not in"
			p.next += 2
		}
		if op == "" {
			break
		}
		c.rest = append(c.rest, comparand{op: op, term: p.sum(), pos: t.pos})
	}
	if len(c.rest) == 0 {
		return first
	}
	return c
}

// operators parses left-associative operators of one precedence.
func (p *parser) operators(operand func() node, ops ...string) node {
	left := operand()
	for {
		t := p.peek()
		if t.kind != tokenOperator || !slices.Contains(ops, t.text) {
			return left
		}
		p.next++
		left = &binary{op: t.text, left: left, right: operand(), pos: t.pos}
	}
}

func (p *parser) sum() node     { return p.operators(p.concat, "+", "-") }
func (p *parser) concat() node  { return p.operators(p.product, "~") }
func (p *parser) product() node { return p.operators(p.power, "*", "/", "//", "%") }
func (p *parser) power() node   { return p.operators(p.signed, "**") }
func (p *parser) signed() node  { return p.unary(true) }

// unary parses a sign or `!`, an operand with its accessors, and, unless it has
// a sign, its filters and tests.
func (p *parser) unary(withFilters bool) node {
	p.enter()
	defer p.leave()
	t := p.peek()
	var result node
	switch {
	case p.skipOperator("-"), p.skipOperator("+"):
		result = withSign(t, p.unary(false))
	case p.skipOperator("!"):
		return &negation{term: p.unary(true)}
	default:
		result = p.primary()
	}
	if result = p.accessors(result); withFilters {
		result = p.filtersAndTests(result)
	}
	return result
}

// withSign folds the sign into a literal number.
func withSign(sign token, term node) node {
	if l, ok := term.(*literal); ok {
		switch v := l.value.(type) {
		case int64, float64, json.Number:
			if sign.text == "-" {
				return &literal{value: python.Negate(v)}
			}
			return l
		}
	}
	return &unary{op: sign.text[0], term: term, pos: sign.pos}
}

func (p *parser) primary() node {
	t := p.peek()
	switch t.kind {
	case tokenNumber:
		p.next++
		return &literal{value: t.value}
	case tokenString:
		s := ""
		for p.peek().kind == tokenString { // adjacent strings join, as in Python
			s += p.take().text
		}
		return &literal{value: s}
	case tokenName:
		return p.name()
	case tokenOperator:
		switch t.text {
		case "(":
			return p.parenthesized()
		case "[":
			return p.list()
		case "{":
			return p.dict()
		}
	}
	panic(p.unexpected("an expression"))
}

var reserved = []string{"and", "or", "not", "if", "else", "elif", "in", "is"}

func (p *parser) name() node {
	t := p.peek()
	if slices.Contains(reserved, t.text) {
		panic(p.unexpected("an expression"))
	}
	p.next++
	switch t.text {
	case "true", "True":
		return &literal{value: true}
	case "false", "False":
		return &literal{value: false}
	case "none", "None", "null":
		return &literal{}
	}
	return &path{root: t.text, pos: t.pos}
}

func (p *parser) parenthesized() node {
	p.next++
	if p.skipOperator(")") {
		return &listLiteral{}
	}
	result := p.tuple(p.expression)
	p.expectOperator(")")
	return result
}

// sequence parses elements with commas between them, and optionally after the
// last one, up to a closing bracket.
func (p *parser) sequence(closer string, element func()) {
	for first := true; !p.skipOperator(closer); first = false {
		if !first {
			p.expectOperator(",")
			if p.skipOperator(closer) {
				break
			}
		}
		element()
	}
}

func (p *parser) list() node {
	list := &listLiteral{pos: p.take().pos}
	p.sequence("]", func() { list.elements = append(list.elements, p.expression()) })
	return list
}

func (p *parser) dict() node {
	dict := &dictLiteral{pos: p.take().pos}
	p.sequence("}", func() {
		dict.keys = append(dict.keys, p.expression())
		p.expectOperator(":")
		dict.values = append(dict.values, p.expression())
	})
	return dict
}

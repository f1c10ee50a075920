package expr

import (
	"encoding/json"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/python"
)

// expression parses a full expression: `a if b else c`.
func (p *parser) expression() (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	result, err := p.or()
	for err == nil && p.skipName("if") {
		c := &conditional{then: result}
		if c.condition, err = p.or(); err != nil {
			break
		}
		if p.skipName("else") {
			c.otherwise, err = p.expression()
		}
		result = c
	}
	return result, err
}

// tuple parses an expression, or several with commas, which make a list.
func (p *parser) tuple(element func() (node, error)) (node, error) {
	first, err := element()
	if err != nil || !p.isOperator(",") {
		return first, err
	}
	list := &listLiteral{elements: []node{first}, pos: p.peek().pos}
	for p.skipOperator(",") {
		if p.atExpressionEnd() {
			break
		}
		e, err := element()
		if err != nil {
			return nil, err
		}
		list.elements = append(list.elements, e)
	}
	return list, nil
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

func (p *parser) or() (node, error) {
	left, err := p.and()
	for err == nil && (p.skipName("or") || p.skipOperator("||")) {
		var right node
		right, err = p.and()
		left = &logical{or: true, left: left, right: right}
	}
	return left, err
}

func (p *parser) and() (node, error) {
	left, err := p.not()
	for err == nil && (p.skipName("and") || p.skipOperator("&&")) {
		var right node
		right, err = p.not()
		left = &logical{left: left, right: right}
	}
	return left, err
}

func (p *parser) not() (node, error) {
	if !p.isName("not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.next++
	term, err := p.not()
	return &negation{term: term}, err
}

var comparisonOperators = []string{"==", "!=", "<", "<=", ">", ">="}

func (p *parser) compare() (node, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
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
		term, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.rest = append(c.rest, comparand{op: op, term: term, pos: t.pos})
	}
	if len(c.rest) == 0 {
		return first, nil
	}
	return c, nil
}

// operators parses left-associative operators of one precedence.
func (p *parser) operators(operand func() (node, error), ops ...string) (node, error) {
	left, err := operand()
	for err == nil {
		t := p.peek()
		if t.kind != tokenOperator || !slices.Contains(ops, t.text) {
			break
		}
		p.next++
		var right node
		right, err = operand()
		left = &binary{op: t.text, left: left, right: right, pos: t.pos}
	}
	return left, err
}

func (p *parser) sum() (node, error)     { return p.operators(p.concat, "+", "-") }
func (p *parser) concat() (node, error)  { return p.operators(p.product, "~") }
func (p *parser) product() (node, error) { return p.operators(p.power, "*", "/", "//", "%") }
func (p *parser) power() (node, error)   { return p.operators(p.filteredUnary, "**") }

func (p *parser) filteredUnary() (node, error) { return p.unary(true) }

// unary parses a sign or `!`, an operand with its accessors, and, unless it has
// a sign, its filters and tests.
func (p *parser) unary(withFilters bool) (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.peek()
	var result node
	var err error
	switch {
	case p.skipOperator("-"), p.skipOperator("+"):
		var term node
		if term, err = p.unary(false); err != nil {
			return nil, err
		}
		result = signed(t, term)
	case p.skipOperator("!"):
		term, err := p.unary(true)
		return &negation{term: term}, err
	default:
		if result, err = p.primary(); err != nil {
			return nil, err
		}
	}
	if result, err = p.accessors(result); err != nil || !withFilters {
		return result, err
	}
	return p.filtersAndTests(result)
}

// signed folds the sign into a literal number.
func signed(sign token, term node) node {
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

func (p *parser) primary() (node, error) {
	t := p.peek()
	switch t.kind {
	case tokenNumber:
		p.next++
		return &literal{value: t.value}, nil
	case tokenString:
		s := ""
		for p.peek().kind == tokenString { // adjacent strings join, as in Python
			s += p.take().text
		}
		return &literal{value: s}, nil
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
	return nil, p.unexpected("an expression")
}

var reserved = []string{"and", "or", "not", "if", "else", "elif", "in", "is"}

func (p *parser) name() (node, error) {
	t := p.peek()
	if slices.Contains(reserved, t.text) {
		return nil, p.unexpected("an expression")
	}
	p.next++
	switch t.text {
	case "true", "True":
		return &literal{value: true}, nil
	case "false", "False":
		return &literal{value: false}, nil
	case "none", "None", "null":
		return &literal{}, nil
	}
	return &path{root: t.text, pos: t.pos}, nil
}

func (p *parser) parenthesized() (node, error) {
	p.next++
	if p.skipOperator(")") {
		return &listLiteral{}, nil
	}
	result, err := p.tuple(p.expression)
	if err != nil {
		return nil, err
	}
	return result, p.expectOperator(")")
}

// sequence parses elements with commas between them, and optionally after the
// last one, up to a closing bracket.
func (p *parser) sequence(closer string, element func() error) error {
	for first := true; !p.skipOperator(closer); first = false {
		if !first {
			if err := p.expectOperator(","); err != nil {
				return err
			}
			if p.skipOperator(closer) {
				break
			}
		}
		if err := element(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) list() (node, error) {
	list := &listLiteral{pos: p.take().pos}
	return list, p.sequence("]", func() error {
		e, err := p.expression()
		list.elements = append(list.elements, e)
		return err
	})
}

func (p *parser) dict() (node, error) {
	dict := &dictLiteral{pos: p.take().pos}
	return dict, p.sequence("}", func() error {
		key, err := p.expression()
		if err != nil {
			return err
		}
		if err := p.expectOperator(":"); err != nil {
			return err
		}
		v, err := p.expression()
		dict.keys, dict.values = append(dict.keys, key), append(dict.values, v)
		return err
	})
}

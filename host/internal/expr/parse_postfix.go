package expr

import (
	"strings"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// accessors parses the accessors of an operand: .name, [key], [a:b],
// (arguments).
func (p *parser) accessors(object node) (node, error) {
	for {
		t := p.peek()
		var err error
		switch {
		case p.skipOperator("."):
			object, err = p.dot(object, t)
		case p.skipOperator("["):
			object, err = p.brackets(object, t)
		case p.isOperator("("):
			object, err = p.callName(object)
		default:
			return object, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) dot(object node, dot token) (node, error) {
	t := p.peek()
	if i, ok := t.value.(int64); ok && t.kind == tokenNumber {
		p.next++
		return access(object, step{index: clamp(i)}, t.pos), nil
	}
	name, err := p.expectName("a name after the dot")
	if err != nil {
		return nil, err
	}
	if !p.isOperator("(") {
		return access(object, step{key: name, isKey: true}, dot.pos), nil
	}
	args, err := p.arguments()
	return &methodCall{object: object, name: name, args: args, pos: t.pos}, err
}

// access adds a static step to a path, or accesses a computed value.
func access(object node, s step, pos int) node {
	if base, ok := object.(*path); ok {
		base.steps = append(base.steps, s)
		return base
	}
	if s.isKey {
		return &attribute{object: object, name: s.key, pos: pos}
	}
	return &subscript{object: object, key: &literal{value: int64(s.index)}, pos: pos}
}

func (p *parser) brackets(object node, open token) (node, error) {
	var parts [3]node
	colons := 0
	for !p.skipOperator("]") {
		if colons < 2 && p.skipOperator(":") {
			colons++
			continue
		}
		if parts[colons] != nil {
			return nil, p.unexpected(`"]"`)
		}
		var err error
		if parts[colons], err = p.expression(); err != nil {
			return nil, err
		}
	}
	if colons > 0 {
		return &slicing{object: object, start: parts[0], stop: parts[1], step: parts[2], pos: open.pos}, nil
	}
	switch key := parts[0].(type) {
	case nil:
		return nil, p.errorf(open.pos, "", "a key or an index is missing between the brackets")
	case *literal:
		switch v := key.value.(type) {
		case string:
			return access(object, step{key: v, isKey: true}, open.pos), nil
		case int64:
			return access(object, step{index: clamp(v)}, open.pos), nil
		}
	}
	return &subscript{object: object, key: parts[0], pos: open.pos}, nil
}

// callName parses the arguments of name(...).
func (p *parser) callName(object node) (node, error) {
	callee, ok := object.(*path)
	if !ok || len(callee.steps) > 0 {
		return nil, p.errorf(p.peek().pos, "", "only functions, macros and methods can be called")
	}
	args, err := p.arguments()
	c := &call{name: callee.root, args: args, pos: callee.pos}
	p.calls = append(p.calls, *c)
	return c, err
}

// arguments parses (a, b, name=c, *list, **dict).
func (p *parser) arguments() (arguments, error) {
	var args arguments
	p.next++
	err := p.sequence(")", func() error { return p.argument(&args) })
	return args, err
}

func (p *parser) argument(args *arguments) (err error) {
	t := p.peek()
	switch {
	case p.skipOperator("*"):
		args.list, err = p.expression()
	case p.skipOperator("**"):
		args.dict, err = p.expression()
	case t.kind == tokenName && p.tokens[p.next+1].kind == tokenOperator && p.tokens[p.next+1].text == "=":
		p.next += 2
		var v node
		v, err = p.expression()
		args.named = append(args.named, namedArgument{name: t.text, value: v})
	default:
		if len(args.named) > 0 {
			return p.errorf(t.pos, "", "positional arguments must come before named ones")
		}
		var v node
		v, err = p.expression()
		args.positional = append(args.positional, v)
	}
	return err
}

// filtersAndTests parses any number of | filter and `is test`.
func (p *parser) filtersAndTests(input node) (node, error) {
	for {
		var err error
		switch {
		case p.isOperator("|"):
			input, err = p.filter(input)
		case p.isName("is"):
			input, err = p.test(input)
		default:
			return input, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) filter(input node) (*filtered, error) {
	p.next++
	t := p.peek()
	name, err := p.dottedName("the name of a filter")
	if err != nil {
		return nil, err
	}
	f, ok := filters()[name]
	if !ok {
		return nil, p.errorf(t.pos, diag.Suggest(name, keys(filters())), "unknown filter %q", name)
	}
	result := &filtered{input: input, name: name, filter: f, pos: t.pos}
	if p.isOperator("(") {
		if result.args, err = p.arguments(); err != nil {
			return nil, err
		}
	}
	if err := p.checkArguments("filter", name, f, result.args, t.pos); err != nil {
		return nil, err
	}
	return result, p.checkInnerName(result)
}

// checkInnerName reports unknown names in map("filter") and select("test").
func (p *parser) checkInnerName(f *filtered) error {
	table, what, at := tests, "test", 0
	switch f.name {
	case "map":
		table, what = filters, "filter"
	case "select", "reject":
	case "selectattr", "rejectattr":
		at = 1
	default:
		return nil
	}
	if at >= len(f.args.positional) {
		return nil
	}
	l, ok := f.args.positional[at].(*literal)
	if !ok {
		return nil
	}
	name, ok := l.value.(string)
	if _, known := table()[name]; known || !ok {
		return nil
	}
	return p.errorf(f.pos, diag.Suggest(name, keys(table())), "unknown %s %q", what, name)
}

func (p *parser) dottedName(what string) (string, error) {
	name, err := p.expectName(what)
	for err == nil && p.skipOperator(".") {
		var part string
		part, err = p.expectName(what)
		name += "." + part
	}
	return name, err
}

func (p *parser) test(input node) (node, error) {
	p.next++
	result := &tested{input: input, negate: p.skipName("not"), pos: p.peek().pos}
	var err error
	if result.name, err = p.dottedName("the name of a test"); err != nil {
		return nil, err
	}
	t, ok := tests()[result.name]
	if !ok {
		return nil, p.errorf(result.pos, diag.Suggest(result.name, keys(tests())), "unknown test %q", result.name)
	}
	result.test = t
	if p.isOperator("(") {
		result.args, err = p.arguments()
	} else if len(t.params) > 0 && p.startsOperand() {
		var arg node
		if arg, err = p.primary(); err == nil {
			arg, err = p.accessors(arg)
		}
		result.args.positional = []node{arg}
	}
	if err != nil {
		return nil, err
	}
	return result, p.checkArguments("test", result.name, t, result.args, result.pos)
}

// startsOperand reports whether a test's argument follows without brackets.
func (p *parser) startsOperand() bool {
	switch t := p.peek(); t.kind {
	case tokenString, tokenNumber:
		return true
	case tokenName:
		return !strings.Contains(" and or not if else is in ", " "+t.text+" ")
	case tokenOperator:
		return t.text == "(" || t.text == "[" || t.text == "{"
	}
	return false
}

// checkArguments reports arguments that a filter or test does not take.
func (p *parser) checkArguments(kind, name string, f filter, args arguments, pos int) error {
	if f.variadic {
		return nil
	}
	if len(args.positional) > len(f.params) {
		return p.errorf(pos, "", "%s %q takes at most %d argument(s), found %d", kind, name, len(f.params), len(args.positional))
	}
	given := len(args.positional)
	for _, n := range args.named {
		i := f.index(n.name)
		if i < 0 {
			return p.errorf(pos, diag.Suggest(n.name, f.params), "%s %q has no argument %q", kind, name, n.name)
		}
		if i < len(args.positional) {
			return p.errorf(pos, "", "%s %q has the argument %q twice", kind, name, n.name)
		}
		given++
	}
	if given < f.required && args.list == nil && args.dict == nil {
		return p.errorf(pos, "", "%s %q needs its argument %q", kind, name, f.params[given])
	}
	return nil
}

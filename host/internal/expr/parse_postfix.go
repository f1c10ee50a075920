package expr

import (
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// accessors parses the accessors of an operand: .name, [key], [a:b],
// (arguments).
func (p *parser) accessors(object node) node {
	for {
		t := p.peek()
		switch {
		case p.skipOperator("."):
			object = p.dot(object, t)
		case p.skipOperator("["):
			object = p.brackets(object, t)
		case p.isOperator("("):
			object = p.callName(object)
		default:
			return object
		}
	}
}

func (p *parser) dot(object node, dot token) node {
	t := p.peek()
	if i, ok := t.value.(int64); ok && t.kind == tokenNumber {
		p.next++
		return access(object, step{index: clamp(i)}, t.pos)
	}
	name := p.expectName("a name after the dot")
	if !p.isOperator("(") {
		return access(object, step{key: name, isKey: true}, dot.pos)
	}
	return &methodCall{object: object, name: name, args: p.arguments(), pos: t.pos}
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

func (p *parser) brackets(object node, open token) node {
	var parts [3]node
	colons := 0
	for !p.skipOperator("]") {
		if colons < 2 && p.skipOperator(":") {
			colons++
			continue
		}
		if parts[colons] != nil {
			panic(p.unexpected(`"]"`))
		}
		parts[colons] = p.expression()
	}
	if colons > 0 {
		return &slicing{object: object, start: parts[0], stop: parts[1], step: parts[2], pos: open.pos}
	}
	switch key := parts[0].(type) {
	case nil:
		panic(p.errorf(open.pos, "", "a key or an index is missing between the brackets"))
	case *literal:
		switch v := key.value.(type) {
		case string:
			return access(object, step{key: v, isKey: true}, open.pos)
		case int64:
			return access(object, step{index: clamp(v)}, open.pos)
		}
	}
	return &subscript{object: object, key: parts[0], pos: open.pos}
}

// callName parses the arguments of name(...).
func (p *parser) callName(object node) node {
	callee, ok := object.(*path)
	if !ok || len(callee.steps) > 0 {
		panic(p.errorf(p.peek().pos, "", "only functions, macros and methods can be called"))
	}
	c := &call{name: callee.root, args: p.arguments(), pos: callee.pos}
	p.calls = append(p.calls, *c)
	return c
}

// arguments parses (a, b, name=c, *list, **dict).
func (p *parser) arguments() arguments {
	var args arguments
	p.next++
	p.sequence(")", func() { p.argument(&args) })
	return args
}

func (p *parser) argument(args *arguments) {
	t := p.peek()
	switch {
	case p.skipOperator("*"):
		args.list = p.expression()
	case p.skipOperator("**"):
		args.dict = p.expression()
	case t.kind == tokenName && p.tokens[p.next+1].kind == tokenOperator && p.tokens[p.next+1].text == "=":
		p.next += 2
		args.named = append(args.named, namedArgument{name: t.text, value: p.expression()})
	default:
		if len(args.named) > 0 {
			panic(p.errorf(t.pos, "", "positional arguments must come before named ones"))
		}
		args.positional = append(args.positional, p.expression())
	}
}

// filtersAndTests parses any number of | filter and `is test`.
func (p *parser) filtersAndTests(input node) node {
	for {
		switch {
		case p.isOperator("|"):
			input = p.filter(input)
		case p.isName("is"):
			input = p.test(input)
		default:
			return input
		}
	}
}

func (p *parser) filter(input node) *filtered {
	p.next++
	t := p.peek()
	name := p.dottedName("the name of a filter")
	f, ok := filters()[name]
	if !ok {
		panic(p.errorf(t.pos, diag.Suggest(name, keys(filters())), "unknown filter %q", name))
	}
	result := &filtered{input: input, name: name, filter: f, pos: t.pos}
	if p.isOperator("(") {
		result.args = p.arguments()
	}
	p.checkArguments("filter", name, f, result.args, t.pos)
	p.checkInnerName(result)
	return result
}

// checkInnerName reports unknown names in map("filter") and select("test").
func (p *parser) checkInnerName(f *filtered) {
	table, what, at := tests, "test", 0
	switch f.name {
	case "map":
		table, what = filters, "filter"
	case "select", "reject":
	case "selectattr", "rejectattr":
		at = 1
	default:
		return
	}
	if at >= len(f.args.positional) {
		return
	}
	l, ok := f.args.positional[at].(*literal)
	if !ok {
		return
	}
	name, ok := l.value.(string)
	if _, known := table()[name]; ok && !known {
		panic(p.errorf(f.pos, diag.Suggest(name, keys(table())), "unknown %s %q", what, name))
	}
}

func (p *parser) dottedName(what string) string {
	name := p.expectName(what)
	for p.skipOperator(".") {
		name += "." + p.expectName(what)
	}
	return name
}

func (p *parser) test(input node) node {
	p.next++
	result := &tested{input: input, negate: p.skipName("not"), pos: p.peek().pos}
	result.name = p.dottedName("the name of a test")
	t, ok := tests()[result.name]
	if !ok {
		panic(p.errorf(result.pos, diag.Suggest(result.name, keys(tests())), "unknown test %q", result.name))
	}
	result.test = t
	if p.isOperator("(") {
		result.args = p.arguments()
	} else if len(t.params) > 0 && p.startsOperand() {
		result.args.positional = []node{p.accessors(p.primary())}
	}
	p.checkArguments("test", result.name, t, result.args, result.pos)
	return result
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
func (p *parser) checkArguments(kind, name string, f filter, args arguments, pos int) {
	if f.variadic {
		return
	}
	if len(args.positional) > len(f.params) {
		panic(p.errorf(pos, "", "%s %q takes at most %d argument(s), found %d", kind, name, len(f.params), len(args.positional)))
	}
	given := len(args.positional)
	for _, n := range args.named {
		i := f.index(n.name)
		if i < 0 {
			panic(p.errorf(pos, diag.Suggest(n.name, f.params), "%s %q has no argument %q", kind, name, n.name))
		}
		if i < len(args.positional) {
			panic(p.errorf(pos, "", "%s %q has the argument %q twice", kind, name, n.name))
		}
		given++
	}
	if given < f.required && args.list == nil && args.dict == nil {
		panic(p.errorf(pos, "", "%s %q needs its argument %q", kind, name, f.params[given]))
	}
}

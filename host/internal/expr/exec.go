package expr

// jump is a break or continue on its way to the loop around it.
type jump uint8

const (
	noJump jump = iota
	breakLoop
	continueLoop
)

func (r *run) write(v any, pos int) {
	r.pos = pos
	r.out = appendText(r.out, v)
}

func (s *text) exec(r *run) { r.write(s.value, r.pos) }

func (s *output) exec(r *run) { r.write(s.value.eval(r), s.pos) }

func (s *do) exec(r *run) { s.value.eval(r) }

func (s *group) exec(r *run) {
	defer r.push()()
	r.body(s.body)
}

func (s *ifStatement) exec(r *run) {
	for _, b := range s.branches {
		if truthy(b.condition.eval(r)) {
			r.body(b.body)
			return
		}
	}
	r.body(s.otherwise)
}

func (s *loopControl) exec(r *run) { r.jump = s.to }

func (s *withStatement) exec(r *run) {
	values := r.list(s.values)
	defer r.push()()
	for i, name := range s.names {
		r.vars.set(name, r.keep(s.values[i], values[i]))
	}
	r.body(s.body)
}

func (s *setStatement) exec(r *run) {
	v := s.value.eval(r)
	r.pos = s.pos
	r.keep(s.value, v)
	if s.attribute == "" {
		r.assign(s.targets, s.isTuple, v)
		return
	}
	target, _ := r.vars.get(s.targets[0])
	ns, ok := target.(*namespace)
	if !ok {
		panic(failf("%s.%s cannot be set: only the attributes of a namespace() can", s.targets[0], s.attribute))
	}
	if _, ok := v.(*namespace); ok {
		panic(failf("a namespace cannot be part of another value"))
	}
	ns.values[s.attribute] = v
}

// assign binds one name to the value, or several names to its elements.
func (r *run) assign(targets []string, isTuple bool, v any) {
	if !isTuple {
		r.vars.set(targets[0], v)
		return
	}
	list := must(elements(v))
	if len(list) != len(targets) {
		panic(failf("cannot assign %d value(s) to %d names", len(list), len(targets)))
	}
	for i, name := range targets {
		r.vars.set(name, list[i])
	}
}

// captured returns the text of a body in a new frame, after its filters.
func (r *run) captured(body []statement, filters []filtered) any {
	pop := r.push()
	var v any = r.capture(func() { r.body(body) })
	pop()
	for i := range filters {
		v = filters[i].apply(r, v)
	}
	return v
}

func (s *setBlock) exec(r *run) { r.vars.set(s.target, r.captured(s.body, s.filters)) }

func (s *filterBlock) exec(r *run) {
	if v := r.captured(s.body, s.filters); r.jump == noJump {
		r.write(v, s.pos)
	}
}

// macro is a macro with the names in its scope.
type macro struct {
	statement *macroStatement
	vars      *frame
}

func (s *macroStatement) exec(r *run) { r.vars.set(s.name, &macro{statement: s, vars: r.vars}) }

func (s *callBlock) exec(r *run) {
	c := s.call.(*call)
	v, _ := r.vars.get(c.name)
	m, ok := v.(*macro)
	if !ok {
		r.pos = c.pos
		panic(failf("%q is not a macro here", c.name))
	}
	args := r.args(&c.args, c.pos)
	if args.named == nil {
		args.named = map[string]any{}
	}
	args.named["caller"] = &macro{statement: s.body, vars: r.vars}
	r.write(m.call(r, args), s.pos)
}

// call expands the macro and returns its text.
func (m *macro) call(r *run, args values) any {
	defer r.enterCall(m.vars)()
	s, pos := m.statement, r.pos
	if len(args.positional) > len(s.params) {
		panic(failf("macro %s takes at most %d argument(s), found %d", s.name, len(s.params), len(args.positional)))
	}
	for i, param := range s.params {
		v := undefined
		named, ok := args.named[param]
		switch {
		case i < len(args.positional):
			v = args.positional[i]
		case ok:
			v = named
			delete(args.named, param)
		case s.defaults[i] != nil:
			v = s.defaults[i].eval(r)
		}
		r.pos = pos
		measure(v)
		r.vars.set(param, v)
	}
	for name, v := range args.named {
		if name != "caller" {
			panic(failf("macro %s has no argument %q", s.name, name))
		}
		r.vars.set(name, v)
	}
	return r.capture(func() { r.body(s.body) })
}

// enterCall counts one level of macros and recursive loops, opens a frame in
// vars, and returns the function that leaves both.
func (r *run) enterCall(vars *frame) (leave func()) {
	if r.calls >= maxCalls {
		panic(failf("macros or recursive loops are nested more than %d levels deep", maxCalls))
	}
	outer := r.vars
	r.calls++
	r.vars = &frame{parent: vars}
	return func() { r.calls, r.vars = r.calls-1, outer }
}

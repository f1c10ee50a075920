package expr

// loop is the object `loop` inside a for statement.
type loop struct {
	statement *forStatement
	vars      *frame // the names of the statement, for a recursive call
	items     []any
	index     int
	depth     int
	changed   any
	seen      bool
}

func (l *loop) field(name string) any {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.index + 1)
	case "index0":
		return int64(l.index)
	case "revindex":
		return int64(n - l.index)
	case "revindex0":
		return int64(n - l.index - 1)
	case "first":
		return l.index == 0
	case "last":
		return l.index == n-1
	case "length":
		return int64(n)
	case "depth":
		return int64(l.depth + 1)
	case "depth0":
		return int64(l.depth)
	case "previtem":
		if l.index > 0 {
			return l.items[l.index-1]
		}
	case "nextitem":
		if l.index < n-1 {
			return l.items[l.index+1]
		}
	}
	return undefined
}

// method calls loop.cycle(...) and loop.changed(...).
func (l *loop) method(name string, args values) any {
	switch name {
	case "cycle":
		if len(args.positional) == 0 {
			panic(failf("loop.cycle() needs values to choose from"))
		}
		return args.positional[l.index%len(args.positional)]
	case "changed":
		return l.hasChanged(args.positional)
	}
	panic(failf("a loop has no method %q", name))
}

// hasChanged reports whether the value differs from the last call's.
func (l *loop) hasChanged(values []any) bool {
	if l.seen && equal(l.changed, values) {
		return false
	}
	l.changed, l.seen = values, true
	return true
}

func (s *forStatement) exec(r *run) {
	v := s.items.eval(r)
	r.pos = s.pos
	s.iterate(r, r.keep(s.items, v), 0)
}

func (s *forStatement) iterate(r *run, v any, depth int) {
	l := &loop{statement: s, vars: r.vars, items: s.selected(r, must(elements(v))), depth: depth}
	if len(l.items) == 0 {
		defer r.push()()
		r.body(s.otherwise)
		return
	}
	for l.index = range l.items {
		s.bind(r, l.vars, l.items[l.index])
		r.vars.set("loop", l)
		r.body(s.body)
		stop := r.jump == breakLoop
		if r.jump = noJump; stop {
			break
		}
	}
	r.vars = l.vars
}

// bind opens a frame with the names of one iteration.
func (s *forStatement) bind(r *run, outer *frame, item any) {
	r.pos = s.pos
	r.tick()
	r.vars = &frame{parent: outer}
	r.assign(s.targets, s.isTuple, item)
}

// selected returns the items for which the statement's `if` is true.
func (s *forStatement) selected(r *run, items []any) []any {
	if s.condition == nil {
		return items
	}
	outer := r.vars
	var out []any
	for _, item := range items {
		s.bind(r, outer, item)
		if truthy(s.condition.eval(r)) {
			out = append(out, item)
		}
	}
	r.vars = outer
	return out
}

// call evaluates loop(items) in a recursive loop: the text of the next level.
func (l *loop) call(r *run, args values) any {
	if !l.statement.recursive {
		panic(failf("loop() needs a recursive loop: {%% for ... in ... recursive %%}"))
	}
	if len(args.positional) != 1 {
		panic(failf("loop() takes the items of the next level"))
	}
	defer r.enterCall(l.vars)()
	measure(args.positional[0])
	return r.capture(func() { l.statement.iterate(r, args.positional[0], l.depth+1) })
}

package expr

import (
	"errors"
	"fmt"
)

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
func (l *loop) method(name string, args values) (any, error) {
	switch name {
	case "cycle":
		if len(args.positional) == 0 {
			return nil, errors.New("loop.cycle() needs values to choose from")
		}
		return args.positional[l.index%len(args.positional)], nil
	case "changed":
		return l.hasChanged(args.positional), nil
	}
	return nil, fmt.Errorf("a loop has no method %q", name)
}

// hasChanged reports whether the value differs from that of the last call.
func (l *loop) hasChanged(values []any) bool {
	if l.seen && equal(l.changed, values) {
		return false
	}
	l.changed, l.seen = values, true
	return true
}

func (s *forStatement) exec(r *run) error {
	v, err := s.items.eval(r)
	if err != nil {
		return err
	}
	if v, err = r.keep(s.items, v, s.pos); err != nil {
		return err
	}
	return s.iterate(r, v, 0)
}

func (s *forStatement) iterate(r *run, v any, depth int) error {
	items, err := elements(v)
	if err != nil {
		return r.wrap(s.pos, err)
	}
	if items, err = s.selected(r, items); err != nil {
		return err
	}
	if len(items) == 0 {
		defer r.push()()
		return r.body(s.otherwise)
	}
	l := &loop{statement: s, vars: r.vars, items: items, depth: depth}
	defer func() { r.vars = l.vars }()
	for l.index = range items {
		if err := r.tick(); err != nil {
			return r.wrap(s.pos, err)
		}
		r.vars = &frame{parent: l.vars}
		if err := r.assign(s.targets, s.isTuple, items[l.index]); err != nil {
			return r.wrap(s.pos, err)
		}
		r.vars.set("loop", l)
		switch err := r.body(s.body); err {
		case nil, errContinue:
		case errBreak:
			return nil
		default:
			return err
		}
	}
	return nil
}

// selected returns the items for which the statement's `if` is true.
func (s *forStatement) selected(r *run, items []any) ([]any, error) {
	if s.condition == nil {
		return items, nil
	}
	outer := r.vars
	defer func() { r.vars = outer }()
	var out []any
	for _, item := range items {
		if err := r.tick(); err != nil {
			return nil, r.wrap(s.pos, err)
		}
		r.vars = &frame{parent: outer}
		if err := r.assign(s.targets, s.isTuple, item); err != nil {
			return nil, r.wrap(s.pos, err)
		}
		v, err := s.condition.eval(r)
		if err != nil {
			return nil, err
		}
		if truthy(v) {
			out = append(out, item)
		}
	}
	return out, nil
}

// call evaluates loop(items) in a recursive loop: the text of the next level.
func (l *loop) call(r *run, args values, pos int) (any, error) {
	if !l.statement.recursive {
		return nil, r.fail(pos, "loop() needs a recursive loop: {%% for ... in ... recursive %%}")
	}
	if len(args.positional) != 1 {
		return nil, r.fail(pos, "loop() takes the items of the next level")
	}
	if err := r.enterCall(pos); err != nil {
		return nil, err
	}
	defer func() { r.calls-- }()
	if err := measured(args.positional[0]); err != nil {
		return nil, r.wrap(pos, err)
	}
	inner := r.vars
	defer func() { r.vars = inner }()
	r.vars = l.vars
	outer := r.out
	r.out = nil
	err := l.statement.iterate(r, args.positional[0], l.depth+1)
	result := string(r.out)
	r.out = outer
	return result, err
}

package expr

import (
	"errors"
	"fmt"
)

// Signals of break and continue; the loop around catches them.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

func (r *run) write(v any) error {
	var err error
	r.out, err = appendText(r.out, v)
	return err
}

func (s *text) exec(r *run) error { return r.write(s.value) }

func (s *output) exec(r *run) error {
	v, err := s.value.eval(r)
	if err != nil {
		return err
	}
	return r.wrap(s.pos, r.write(v))
}

func (s *do) exec(r *run) error {
	_, err := s.value.eval(r)
	return err
}

func (s *group) exec(r *run) error {
	defer r.push()()
	return r.body(s.body)
}

func (s *ifStatement) exec(r *run) error {
	for _, b := range s.branches {
		v, err := b.condition.eval(r)
		if err != nil {
			return err
		}
		if truthy(v) {
			return r.body(b.body)
		}
	}
	return r.body(s.otherwise)
}

func (s *loopControl) exec(*run) error {
	if s.stop {
		return errBreak
	}
	return errContinue
}

func (s *withStatement) exec(r *run) error {
	values, err := r.list(s.values)
	if err != nil {
		return err
	}
	defer r.push()()
	for i, name := range s.names {
		v, err := r.keep(s.values[i], values[i], 0)
		if err != nil {
			return err
		}
		r.vars.set(name, v)
	}
	return r.body(s.body)
}

func (s *setStatement) exec(r *run) error {
	v, err := s.value.eval(r)
	if err != nil {
		return err
	}
	if v, err = r.keep(s.value, v, s.pos); err != nil {
		return err
	}
	if s.attribute == "" {
		return r.wrap(s.pos, r.assign(s.targets, s.isTuple, v))
	}
	target, _ := r.vars.get(s.targets[0])
	ns, ok := target.(*namespace)
	if !ok {
		return r.fail(s.pos, "%s.%s cannot be set: only the attributes of a namespace() can", s.targets[0], s.attribute)
	}
	if _, ok := v.(*namespace); ok {
		return r.fail(s.pos, "a namespace cannot be part of another value")
	}
	ns.values[s.attribute] = v
	return nil
}

// assign binds one name to the value, or several names to its elements.
func (r *run) assign(targets []string, isTuple bool, v any) error {
	if !isTuple {
		r.vars.set(targets[0], v)
		return nil
	}
	list, err := elements(v)
	if err != nil {
		return err
	}
	if len(list) != len(targets) {
		return fmt.Errorf("cannot assign %d value(s) to %d names", len(list), len(targets))
	}
	for i, name := range targets {
		r.vars.set(name, list[i])
	}
	return nil
}

// captured returns the text of a body in a new frame, after its filters.
func (r *run) captured(body []statement, filters []filtered) (any, error) {
	pop := r.push()
	s, err := r.capture(body)
	pop()
	if err != nil {
		return nil, err
	}
	var v any = s
	for i := range filters {
		if v, err = filters[i].apply(r, v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (s *setBlock) exec(r *run) error {
	v, err := r.captured(s.body, s.filters)
	if err == nil {
		r.vars.set(s.target, v)
	}
	return err
}

func (s *filterBlock) exec(r *run) error {
	v, err := r.captured(s.body, s.filters)
	if err != nil {
		return err
	}
	return r.wrap(s.pos, r.write(v))
}

// macro is a macro with the names in its scope.
type macro struct {
	statement *macroStatement
	vars      *frame
}

func (s *macroStatement) exec(r *run) error {
	r.vars.set(s.name, &macro{statement: s, vars: r.vars})
	return nil
}

func (s *callBlock) exec(r *run) error {
	c := s.call.(*call)
	v, _ := r.vars.get(c.name)
	m, ok := v.(*macro)
	if !ok {
		return r.fail(c.pos, "%q is not a macro here", c.name)
	}
	args, err := r.args(&c.args, c.pos)
	if err != nil {
		return err
	}
	if args.named == nil {
		args.named = map[string]any{}
	}
	args.named["caller"] = &macro{statement: s.body, vars: r.vars}
	result, err := m.call(r, args, c.pos)
	if err != nil {
		return err
	}
	return r.wrap(s.pos, r.write(result))
}

// call expands the macro and returns its text.
func (m *macro) call(r *run, args values, pos int) (any, error) {
	if err := r.enterCall(pos); err != nil {
		return nil, err
	}
	defer func() { r.calls-- }()
	s := m.statement
	if len(args.positional) > len(s.params) {
		return nil, r.fail(pos, "macro %s takes at most %d argument(s), found %d", s.name, len(s.params), len(args.positional))
	}
	outer := r.vars
	defer func() { r.vars = outer }()
	r.vars = &frame{parent: m.vars}
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
			var err error
			if v, err = s.defaults[i].eval(r); err != nil {
				return nil, err
			}
		}
		if err := measured(v); err != nil {
			return nil, r.wrap(pos, err)
		}
		r.vars.set(param, v)
	}
	for name, v := range args.named {
		if name != "caller" {
			return nil, r.fail(pos, "macro %s has no argument %q", s.name, name)
		}
		r.vars.set(name, v)
	}
	return r.capture(s.body)
}

// enterCall counts one level of macros and recursive loops.
func (r *run) enterCall(pos int) error {
	if r.calls >= maxCalls {
		return r.fail(pos, "macros or recursive loops are nested more than %d levels deep", maxCalls)
	}
	r.calls++
	return nil
}

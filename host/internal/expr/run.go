package expr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Bounds of one evaluation, in addition to maxText.
const (
	maxElements  = 4_000_000 // of one value, on all levels
	maxDepth     = 1000      // levels of one computed value
	maxRange     = 100_000   // as in Jinja's sandbox
	maxCalls     = 64        // nested macros and recursive loops
	ticksPerLook = 256       // steps between two checks of the context
	maxTicks     = 50_000_000
)

// run is one evaluation of a template that needs more than look-ups. It is not
// safe for concurrent use.
type run struct {
	ctx      context.Context
	scope    Scope
	template *Template
	vars     *frame
	out      []byte
	ticks    int
	calls    int
	// optional reports that a look-up need not find anything.
	optional bool
	// roots are the roots with required members of which an object was read.
	roots map[string]any
}

// frame has the names that a block binds.
type frame struct {
	parent *frame
	names  []string
	values []any
}

func (f *frame) set(name string, v any) {
	for i, n := range f.names {
		if n == name {
			f.values[i] = v
			return
		}
	}
	f.names, f.values = append(f.names, name), append(f.values, v)
}

func (f *frame) get(name string) (any, bool) {
	for ; f != nil; f = f.parent {
		for i, n := range f.names {
			if n == name {
				return f.values[i], true
			}
		}
	}
	return nil, false
}

// push opens a frame and returns the function that closes it.
func (r *run) push() func() {
	outer := r.vars
	r.vars = &frame{parent: outer}
	return func() { r.vars = outer }
}

func (r *run) fail(pos int, format string, args ...any) error {
	return r.template.failure(pos, "", fmt.Errorf(format, args...))
}

// wrap adds a position to an error without one.
func (r *run) wrap(pos int, err error) error {
	var positioned *EvalError
	if err == nil || errors.As(err, &positioned) {
		return err
	}
	var hinted *hintedError
	if errors.As(err, &hinted) {
		return r.template.failure(pos, hinted.hint, err)
	}
	return r.template.failure(pos, "", err)
}

// hintedError is an error with a hint.
type hintedError struct{ message, hint string }

func (e *hintedError) Error() string { return e.message }

// tick counts one small step of work, such as one element, and regularly checks
// the context. Code with long steps calls alive.
func (r *run) tick() error {
	if r.ticks++; r.ticks > maxTicks {
		return fmt.Errorf("the evaluation takes more than %d steps", maxTicks)
	}
	if r.ticks%ticksPerLook == 0 {
		return r.alive()
	}
	return nil
}

func (r *run) alive() error {
	if r.ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("the evaluation was stopped: %w", context.Cause(r.ctx))
}

// body executes statements in order.
func (r *run) body(body []statement) error {
	for _, s := range body {
		if err := r.alive(); err != nil {
			return r.wrap(0, err)
		}
		if err := s.exec(r); err != nil {
			return err
		}
	}
	return nil
}

// capture executes statements and returns their text instead of writing it.
func (r *run) capture(body []statement) (string, error) {
	outer := r.out
	r.out = nil
	err := r.body(body)
	result := string(r.out)
	r.out = outer
	return result, err
}

// keep checks a computed value that the template uses again. Values that it
// contains several times count each time.
func (r *run) keep(from node, v any, pos int) (any, error) {
	if _, ok := from.(*path); ok {
		return v, nil
	}
	if err := measured(v); err != nil {
		return nil, r.wrap(pos, err)
	}
	return v, nil
}

// measure counts the elements of a value on all levels.
type measure struct{ count int }

func measured(v any) error { return new(measure).add(v, 0) }

func (m *measure) add(v any, depth int) error {
	if m.count++; m.count > maxElements {
		return fmt.Errorf("a value has more than %d elements", maxElements)
	}
	if depth > maxDepth {
		return fmt.Errorf("a value is nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := m.add(e, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := m.add(e, depth+1); err != nil {
				return err
			}
		}
	case *pair:
		return m.add(v.list(), depth)
	case *namespace:
		if depth > 0 {
			return errors.New("a namespace cannot be part of another value")
		}
	}
	return nil
}

// export converts a result to the value model: undefined to null, a pair to a
// list, a namespace to an object. It copies only what changes.
func export(v any) (any, error) {
	if err := measured(v); err != nil {
		return nil, err
	}
	out, _, err := exported(v)
	return out, err
}

func exported(v any) (out any, changed bool, err error) {
	switch v := v.(type) {
	case undefinedType:
		return nil, true, nil
	case *pair:
		out, _, err = exported(v.list())
		return out, true, err
	case *namespace:
		out, _, err = exported(v.values)
		return out, true, err
	case callable, *cycler:
		return nil, false, fmt.Errorf("a %s is not a value", typeName(v))
	case []any:
		list := v
		for i, e := range v {
			inner, changedInner, err := exported(e)
			if err != nil {
				return nil, false, err
			}
			if changedInner {
				if !changed {
					list, changed = slices.Clone(v), true
				}
				list[i] = inner
			}
		}
		return list, changed, nil
	case map[string]any:
		object := v
		for k, e := range v {
			inner, changedInner, err := exported(e)
			if err != nil {
				return nil, false, err
			}
			if changedInner {
				if !changed {
					object, changed = maps.Clone(v), true
				}
				object[k] = inner
			}
		}
		return object, changed, nil
	}
	return v, false, nil
}

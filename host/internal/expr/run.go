package expr

import (
	"context"
	"maps"
	"slices"
)

// Bounds of one evaluation, in addition to maxText.
const (
	maxElements   = 4_000_000 // of one value, on all levels
	maxDepth      = 1000      // levels of one computed value
	maxRange      = 100_000   // as in Jinja's sandbox
	maxCalls      = 64        // nested macros and recursive loops
	ticksPerCheck = 256       // steps between two checks of the context
	maxTicks      = 50_000_000
)

// run is one evaluation of a template that needs more than look-ups. It is not
// safe for concurrent use.
type run struct {
	ctx      context.Context
	scope    Scope
	template *Template
	vars     *frame
	pos      int // of the operation that runs
	jump     jump
	out      []byte
	ticks    int
	calls    int
	// optional reports whether a look-up need not find anything.
	optional bool
	// roots are the roots with required members from which an object was read.
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

// at sets the position of the following operation, for its failure.
func (r *run) at(pos int) {
	r.pos = pos
	r.alive()
}

// tick counts one small step of work, such as one element, and regularly checks
// the context. Code with long steps calls alive.
func (r *run) tick() {
	if r.ticks++; r.ticks > maxTicks {
		panic(failf("the evaluation takes more than %d steps", maxTicks))
	}
	if r.ticks%ticksPerCheck == 0 {
		r.alive()
	}
}

func (r *run) alive() {
	if r.ctx.Err() != nil {
		panic(failf("the evaluation was stopped: %w", context.Cause(r.ctx)))
	}
}

// body executes statements in order, up to a break or continue.
func (r *run) body(body []statement) {
	for _, s := range body {
		r.alive()
		if s.exec(r); r.jump != noJump {
			return
		}
	}
}

// capture returns the text that exec writes.
func (r *run) capture(exec func()) string {
	outer := r.out
	r.out = nil
	exec()
	result := string(r.out)
	r.out = outer
	return result
}

// keep checks a computed value that the template uses again. Values that it
// contains several times count each time.
func (r *run) keep(from node, v any) any {
	if _, ok := from.(*path); !ok {
		measure(v)
	}
	return v
}

// measure checks the elements of a value on all levels.
func measure(v any) {
	count := 0
	var add func(v any, depth int)
	add = func(v any, depth int) {
		if count++; count > maxElements {
			panic(failf("a value has more than %d elements", maxElements))
		}
		if depth > maxDepth {
			panic(failf("a value is nested deeper than %d levels", maxDepth))
		}
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				add(e, depth+1)
			}
		case map[string]any:
			for _, e := range v {
				add(e, depth+1)
			}
		case *pair:
			add(v.list(), depth)
		case *namespace:
			if depth > 0 {
				panic(failf("a namespace cannot be part of another value"))
			}
		}
	}
	add(v, 0)
}

// export converts a result to the value model: undefined to null, a pair to a
// list, a namespace to an object. It copies only what changes.
func export(v any) any {
	measure(v)
	out, _ := exported(v)
	return out
}

func exported(v any) (out any, changed bool) {
	switch v := v.(type) {
	case undefinedType:
		return nil, true
	case *pair:
		out, _ = exported(v.list())
		return out, true
	case *namespace:
		out, _ = exported(v.values)
		return out, true
	case callable, *cycler:
		panic(failf("a %s is not a value", typeName(v)))
	case []any:
		list := v
		for i, e := range v {
			if inner, is := exported(e); is {
				if !changed {
					list, changed = slices.Clone(v), true
				}
				list[i] = inner
			}
		}
		return list, changed
	case map[string]any:
		object := v
		for k, e := range v {
			if inner, is := exported(e); is {
				if !changed {
					object, changed = maps.Clone(v), true
				}
				object[k] = inner
			}
		}
		return object, changed
	}
	return v, false
}

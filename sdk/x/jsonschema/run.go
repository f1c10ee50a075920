package jsonschema

import (
	"fmt"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Bounds of one check, so that it ends for every schema: baseSteps, and stepsPerValue for
// each checked value, bound the number of times that subschemas are applied.
const (
	baseSteps     = 100_000
	stepsPerValue = 50
	maxProblems   = 1000
	maxNesting    = 2000
)

// run is one check of one value. It belongs to one goroutine.
type run struct {
	problems   []Problem
	tracks     bool
	isTemplate func(path string) bool
	value      any // the whole value; nil while defaults are checked

	scope   []*resource // resources entered, outermost first; for $dynamicRef
	steps   int         // remaining steps
	depth   int
	stopped string // why the check was stopped
}

// evaluated records the members and items of a value that some keyword has checked; the
// unevaluated keywords check the others. A nil evaluated records nothing.
type evaluated struct {
	allMembers bool
	members    map[string]bool
	allItems   bool
	items      int // the first ones
	item       map[int]bool
}

func (e *evaluated) merge(other *evaluated) {
	if e == nil || other == nil {
		return
	}
	e.allMembers = e.allMembers || other.allMembers
	for name := range other.members {
		e.member(name)
	}
	e.allItems = e.allItems || other.allItems
	e.items = max(e.items, other.items)
	for i := range other.item {
		e.oneItem(i)
	}
}

func (e *evaluated) member(name string) {
	if e == nil {
		return
	}
	if e.members == nil {
		e.members = map[string]bool{}
	}
	e.members[name] = true
}

func (e *evaluated) oneItem(i int) {
	if e == nil {
		return
	}
	if e.item == nil {
		e.item = map[int]bool{}
	}
	e.item[i] = true
}

func (e *evaluated) hasItem(i int) bool { return e.allItems || i < e.items || e.item[i] }

func (r *run) problem(at *place, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	r.report(Problem{Path: at.String(), Message: message, Wanted: message})
}

// mismatch returns a problem whose message ends with the given value.
func (r *run) mismatch(at *place, got, format string, args ...any) {
	wanted := fmt.Sprintf(format, args...)
	r.report(Problem{Path: at.String(), Message: wanted + ", got " + got, Wanted: wanted})
}

// wrongType reports a value whose type is none of types.
func (r *run) wrongType(at *place, v any, types []string) {
	expected := "expected " + orList(types) + ", got "
	r.report(Problem{Path: at.String(), Message: expected + describe(v), Wanted: expected + typeOf(v)})
}

func (r *run) report(p Problem) {
	if len(r.problems) >= maxProblems {
		r.stop(fmt.Sprintf("more than %d problems; the rest is not listed", maxProblems))
		return
	}
	r.problems = append(r.problems, p)
}

func (r *run) stop(why string) {
	if r.stopped == "" {
		r.stopped = why
	}
}

// validate checks v, which is at a place, and records in seen what it has checked if v
// matches.
func (r *run) validate(n *node, v any, at *place, seen *evaluated) {
	if r.steps--; r.steps < 0 {
		r.stop("the schema takes too many steps for this value; the check was stopped")
	}
	if r.depth > maxNesting {
		r.stop(fmt.Sprintf("the value nests deeper than %d; the check was stopped", maxNesting))
	}
	if r.stopped != "" || r.isTemplate != nil && r.isTemplate(at.String()) {
		return
	}
	if n.never {
		r.problem(at, "is not allowed here")
		return
	}
	r.depth++
	if len(r.scope) == 0 || r.scope[len(r.scope)-1] != n.resource {
		r.scope = append(r.scope, n.resource)
		defer func() { r.scope = r.scope[:len(r.scope)-1] }()
	}
	before := len(r.problems)
	var own *evaluated
	if r.tracks {
		own = &evaluated{}
	}
	r.keywords(n, v, at, own)
	if len(r.problems) == before {
		r.unevaluated(n, v, at, own)
	}
	if len(r.problems) == before {
		seen.merge(own)
	}
	r.depth--
}

func (r *run) keywords(n *node, v any, at *place, own *evaluated) {
	if n.ref != nil {
		r.validate(n.ref, v, at, own)
	}
	if n.dynamic != nil {
		r.validate(r.lookUp(n.dynamic), v, at, own)
	}
	if n.types != nil {
		r.checkType(n.types, v, at)
	}
	if n.enum != nil {
		r.checkEnum(n.enum, v, at)
	}
	switch v := v.(type) {
	case string:
		if n.text != nil {
			r.checkText(n.text, v, at)
		}
	case []any:
		if n.array != nil {
			r.checkArray(n.array, v, at, own)
		}
	case map[string]any:
		if n.object != nil {
			r.checkObject(n.object, v, at, own)
		}
	default:
		if n.number != nil && value.IsNumber(v) {
			r.checkNumber(n.number, v, at)
		}
	}
	if n.logic != nil {
		r.checkLogic(n.logic, v, at, own)
	}
}

// unevaluated runs the keywords that depend on what all other keywords have checked.
func (r *run) unevaluated(n *node, v any, at *place, own *evaluated) {
	switch v := v.(type) {
	case []any:
		if n.array == nil || n.array.unevaluated == nil {
			return
		}
		for i, item := range v {
			if !own.hasItem(i) {
				r.validate(n.array.unevaluated, item, at.item(i), nil)
			}
		}
		own.allItems = true
	case map[string]any:
		if n.object == nil || n.object.unevaluated == nil || own.allMembers {
			return
		}
		for _, name := range sortedKeys(v) {
			if !own.members[name] {
				r.validate(n.object.unevaluated, v[name], at.member(name), nil)
			}
		}
		own.allMembers = true
	}
}

// lookUp finds the target of a $dynamicRef from here.
func (r *run) lookUp(ref *dynamicRef) *node {
	if ref.name != "" {
		for _, res := range r.scope {
			if n := res.dynamic[ref.name]; n != nil {
				return n
			}
		}
	}
	return ref.target
}

// try checks v and returns the problems instead of reporting them.
func (r *run) try(n *node, v any, at *place, seen *evaluated) []Problem {
	outer := r.problems
	r.problems = nil
	r.validate(n, v, at, seen)
	found := r.problems
	r.problems = outer
	return found
}

// containsTemplate reports whether v is or contains a template, so that v as a whole cannot be
// checked yet.
func (r *run) containsTemplate(v any, at *place) bool {
	if r.isTemplate == nil {
		return false
	}
	if r.isTemplate(at.String()) {
		return true
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if r.containsTemplate(e, at.item(i)) {
				return true
			}
		}
	case map[string]any:
		for name, e := range v {
			if r.containsTemplate(e, at.member(name)) {
				return true
			}
		}
	}
	return false
}

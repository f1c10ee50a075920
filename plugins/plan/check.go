package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// limits are the limits of a plan.
type limits struct {
	Subtasks int // 0 = any number
	// Depth is the number of levels; a plan without groups has one.
	Depth int
}

const (
	// maxID bounds the length of an id.
	maxID = 200
	// maxFaults bounds how many faults are listed.
	maxFaults = 20
)

// faults returns the faults of a plan, each as a sentence for its author, who may be
// a model.
func (p *Plan) faults(l limits) []string {
	var list []string
	add := func(format string, args ...any) {
		if len(list) < maxFaults {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	if len(p.Subtasks) == 0 {
		add("the plan has no subtasks")
	}
	if l.Subtasks > 0 && len(p.Subtasks) > l.Subtasks {
		add("the plan has %d subtasks; the limit is %d (max_subtasks)", len(p.Subtasks), l.Subtasks)
	}
	ids := make([]string, 0, len(p.Subtasks))
	seen := make(map[string]bool, len(p.Subtasks))
	for i, s := range p.Subtasks {
		switch {
		case s.ID == "":
			add("subtasks[%d] has no id", i)
		case len(s.ID) > maxID || strings.ContainsFunc(s.ID, unicode.IsControl):
			add("subtasks[%d]: the id %.40q is too long or has control characters", i, s.ID)
		case seen[s.ID]:
			add("duplicate subtask id %q", s.ID)
		}
		if strings.TrimSpace(s.Description) == "" {
			add("subtask %q has no description", s.ID)
		}
		seen[s.ID] = true
		ids = append(ids, s.ID)
	}
	for _, s := range p.Subtasks {
		for _, d := range s.Dependencies {
			if d == s.ID {
				add("subtask %q depends on itself", s.ID)
			} else if !seen[d] {
				add("subtask %q depends on %q, which does not exist%s", s.ID, d, diag.Ending(d, ids))
			}
		}
		if s.Parent != "" && !seen[s.Parent] {
			add("subtask %q belongs to %q, which does not exist%s", s.ID, s.Parent, diag.Ending(s.Parent, ids))
		}
	}
	if len(list) > 0 {
		return list
	}
	// Check the depth first: the search for cycles walks the enclosing groups of each subtask.
	if s, depth := p.deepest(); depth > l.Depth {
		add("subtask %q is %d levels deep; the limit is %d (max_depth)", s.ID, depth, l.Depth)
	} else if cycle := p.cycle(); cycle != nil {
		add("the dependencies form a cycle: %s", strings.Join(cycle, " -> "))
	}
	return list
}

// check returns the faults of a plan as an error.
func (p *Plan) check(l limits) error {
	faults := p.faults(l)
	if len(faults) == 0 {
		return nil
	}
	return invalid("the plan is not valid: "+strings.Join(faults, "; "), faults)
}

// invalid returns a validation error with a list of faults.
func invalid(message string, faults []string) *tea.Error {
	list := make([]any, len(faults))
	for i, f := range faults {
		list[i] = f
	}
	e := tea.Errorf(tea.ValidationError, "%s", message)
	e.Details = map[string]any{"faults": list}
	return e
}

// cycle returns the ids of a cycle, with the first one repeated at the end; nil if there
// is none. A subtask waits for its dependencies, the dependencies of its enclosing
// groups, and, if it is a group, its members.
func (p *Plan) cycle() []string {
	byID := p.byID()
	members := map[string][]string{}
	for _, s := range p.Subtasks {
		if s.Parent != "" {
			members[s.Parent] = append(members[s.Parent], s.ID)
		}
	}
	const open, done = 1, 2
	state := make(map[string]int, len(p.Subtasks))
	var path []string
	var visit func(id string) []string
	visit = func(id string) []string {
		switch state[id] {
		case done:
			return nil
		case open:
			from := slices.Index(path, id)
			return append(slices.Clone(path[from:]), id)
		}
		state[id] = open
		path = append(path, id)
		s := byID[id]
		for _, next := range slices.Concat(s.Dependencies, members[id]) {
			if found := visit(next); found != nil {
				return found
			}
		}
		for around, n := s.Parent, 0; around != ""; around, n = byID[around].Parent, n+1 {
			if n > len(p.Subtasks) {
				return []string{s.ID, s.Parent, s.ID} // groups enclose each other
			}
			for _, next := range byID[around].Dependencies {
				if found := visit(next); found != nil {
					return found
				}
			}
		}
		path = path[:len(path)-1]
		state[id] = done
		return nil
	}
	for _, s := range p.Subtasks {
		if found := visit(s.ID); found != nil {
			return found
		}
	}
	return nil
}

// levelOf returns the level of a subtask, counted from 1. Its enclosing groups must not
// have a cycle.
func levelOf(s *Subtask, byID map[string]*Subtask) int {
	n := 1
	for around := s.Parent; around != ""; around = byID[around].Parent {
		n++
	}
	return n
}

// deepest returns a subtask at the deepest level, counted from 1; nil if groups enclose
// each other.
func (p *Plan) deepest() (deepest *Subtask, depth int) {
	byID, levels := p.byID(), make(map[*Subtask]int, len(p.Subtasks))
	for _, s := range p.Subtasks {
		var chain []*Subtask
		for around := s; around != nil && levels[around] == 0; around = byID[around.Parent] {
			if chain = append(chain, around); len(chain) > len(p.Subtasks) {
				return nil, 0
			}
		}
		for _, s := range slices.Backward(chain) {
			levels[s] = levels[byID[s.Parent]] + 1
		}
		if levels[s] > depth {
			deepest, depth = s, levels[s]
		}
	}
	return deepest, depth
}

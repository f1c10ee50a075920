package jsonschema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
)

// logicRules are the keywords that combine schemas.
type logicRules struct {
	allOf, anyOf, oneOf   []*node
	not                   *node
	cond, then, otherwise *node
}

func (k *keywords) logics() *logicRules {
	if !k.has("allOf", "anyOf", "oneOf", "not", "if") {
		return nil
	}
	return &logicRules{
		allOf: k.schemas("allOf"), anyOf: k.schemas("anyOf"), oneOf: k.schemas("oneOf"),
		not: k.schema("not"), cond: k.schema("if"), then: k.schema("then"), otherwise: k.schema("else"),
	}
}

func (r *run) checkLogic(rules *logicRules, v any, at *place, own *evaluated) {
	for _, sub := range rules.allOf {
		r.validate(sub, v, at, own)
	}
	if rules.anyOf != nil {
		r.checkChoice(rules.anyOf, v, at, own, false)
	}
	if rules.oneOf != nil {
		r.checkChoice(rules.oneOf, v, at, own, true)
	}
	if rules.not != nil && !r.containsTemplate(v, at) && len(r.try(rules.not, v, at, nil)) == 0 {
		r.report(Problem{Path: at.String(), Message: notMessage(rules.not, v), Wanted: "is an excluded value"})
	}
	if rules.cond == nil || (rules.then != nil || rules.otherwise != nil) && r.containsTemplate(v, at) {
		return
	}
	if len(r.try(rules.cond, v, at, own)) == 0 {
		if rules.then != nil {
			before := len(r.problems)
			r.validate(rules.then, v, at, own)
			for i := range r.problems[before:] {
				p := &r.problems[before+i]
				p.Message, p.Wanted = p.Message+rules.cond.reason(), p.Wanted+rules.cond.reason()
			}
		}
	} else if rules.otherwise != nil {
		r.validate(rules.otherwise, v, at, own)
	}
}

// checkChoice checks anyOf, and oneOf if exactly one form may match.
func (r *run) checkChoice(forms []*node, v any, at *place, own *evaluated, onlyOne bool) {
	failed := make([][]Problem, len(forms))
	var fitting []int
	for i, form := range forms {
		if failed[i] = r.try(form, v, at, own); len(failed[i]) == 0 {
			fitting = append(fitting, i)
		}
	}
	switch {
	case r.stopped != "":
	case len(fitting) == 0:
		r.reportNoMatch(forms, failed, v, at)
	case onlyOne && len(fitting) > 1 && !r.containsTemplate(v, at):
		if members := onlyRequired(forms); members != nil {
			given := orList([]string{members[fitting[0]], members[fitting[1]]})
			r.problem(at, "only one of %s is allowed: remove %s", strings.Join(members, ", "), given)
			return
		}
		r.problem(at, "must fit exactly one of %d forms, fits forms %d and %d", len(forms), fitting[0]+1, fitting[1]+1)
	}
}

// reportNoMatch reports why no form matches: the problems of the intended form, if the type or a
// distinguishing member identifies it; otherwise one problem for all forms.
func (r *run) reportNoMatch(forms []*node, failed [][]Problem, v any, at *place) {
	var types []string
	mistyped, meant := 0, -1
	for i, form := range forms {
		form = form.behindRef()
		if form.types != nil && !slices.ContainsFunc(form.types, func(t string) bool { return typeFits(t, v) }) {
			mistyped++
			types = append(types, form.types...)
			continue
		}
		if form.contradicts(v) {
			continue
		}
		if meant >= 0 {
			meant = len(forms) // more than one
			continue
		}
		meant = i
	}
	switch {
	case mistyped == len(forms):
		slices.Sort(types)
		r.wrongType(at, v, slices.Compact(types))
	case meant >= 0 && meant < len(forms):
		for _, p := range failed[meant] {
			if len(r.problems) < maxProblems {
				r.problems = append(r.problems, p)
			}
		}
	case onlyMissing(failed, at.String()) != nil:
		r.problem(at, "needs %s", orList(onlyMissing(failed, at.String())))
	default:
		wanted := fmt.Sprintf("fits none of the %d allowed forms", len(forms))
		r.report(Problem{Path: at.String(), Message: wanted + ": " + firstOfEach(failed, at.String()), Wanted: wanted})
	}
}

// onlyMissing returns the missing members if each alternative failed only because a single
// member of the value at here is missing; otherwise nil.
func onlyMissing(failed [][]Problem, here string) (members []string) {
	for _, problems := range failed {
		if len(problems) != 1 || problems[0].Kind != MissingMember || problems[0].Path != here {
			return nil
		}
		members = append(members, problems[0].Member)
	}
	return members
}

// onlyRequired returns the members that the forms require; nil unless each form requires
// exactly one.
func onlyRequired(forms []*node) (members []string) {
	for _, form := range forms {
		if form.object == nil || len(form.object.required) != 1 {
			return nil
		}
		members = append(members, form.object.required[0])
	}
	return members
}

// reason describes the condition of an if: the members that it needs, and their values.
func (n *node) reason() string {
	if n.object == nil {
		return ""
	}
	var parts []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(n.object.names), n.object.required...)))) {
		if rule := n.object.properties[name]; rule == nil {
			parts = append(parts, name+" is given")
		} else if rule.enum != nil {
			parts = append(parts, name+" is "+orList(rule.enum.strings))
		}
	}
	if parts == nil {
		return ""
	}
	return ", because " + strings.Join(parts, " and ")
}

// behindRef returns the target of a plain reference.
func (n *node) behindRef() *node {
	for n.ref != nil && n.types == nil {
		n = n.ref
	}
	return n
}

// contradicts reports whether a member with certain allowed values, such as "type" or "kind",
// shows that v is intended to have another form.
func (n *node) contradicts(v any) bool {
	m, ok := v.(map[string]any)
	if !ok || n.object == nil {
		return false
	}
	for name, rule := range n.object.properties {
		given, has := m[name]
		if has && rule.enum != nil && !rule.enum.keys[value.Key(given)] {
			return true
		}
	}
	return false
}

// firstOfEach describes why each form does not match, in bounded length, because forms can
// contain forms.
func firstOfEach(failed [][]Problem, here string) string {
	const shown = 5
	var parts []string
	for i, problems := range failed {
		if i == shown {
			parts = append(parts, "...")
			break
		}
		p := problems[0]
		if p.Path == here {
			p.Path = ""
		}
		parts = append(parts, fmt.Sprintf("(%d) %s", i+1, shorten(p.Error(), 2*maxShown)))
	}
	return strings.Join(parts, "; ")
}

func notMessage(not *node, v any) string {
	switch {
	case not.enum != nil:
		return "must not be " + quote(v)
	case not.types != nil:
		return "must not be of type " + orList(not.types)
	}
	return "must not be of the excluded form"
}

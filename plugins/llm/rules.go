package llm

import (
	"context"
	"slices"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Rule decides about calls of tools.
type Rule struct {
	Tool      string         `json:"tool" minLength:"1" doc:"name of a tool or an action; * stands for any text"`
	Arguments map[string]any `json:"arguments,omitempty" doc:"arguments that the call must have, by name: a value, a text in which * stands for any text, or a comparison such as '> 50'; default: any"`
	Then      string         `json:"then" enum:"allow,ask,deny" doc:"allow: make the call; ask: ask a person first; deny: tell the agent that it may not"`
}

// Decisions of rules, the least strict first.
const (
	ruleAllow = "allow"
	ruleAsk   = "ask"
	ruleDeny  = "deny"
)

// strictness orders decisions.
func strictness(decision string) int {
	switch decision {
	case ruleDeny:
		return 2
	case ruleAsk:
		return 1
	}
	return 0
}

// decide returns the decision of the first rule that matches a call; otherwise without.
func decide(rules []Rule, t *tool, arguments map[string]any, without string) string {
	for _, r := range rules {
		if r.matches(t, arguments) {
			return r.Then
		}
	}
	return without
}

func (r Rule) matches(t *tool, arguments map[string]any) bool {
	if !matchText(r.Tool, t.name) && !matchText(r.Tool, t.action) {
		return false
	}
	for name, wanted := range r.Arguments {
		given, ok := arguments[name]
		if !ok || !matchValue(wanted, given) {
			return false
		}
	}
	return true
}

// matchValue reports whether an argument matches the value of a rule.
func matchValue(wanted, given any) bool {
	pattern, isText := wanted.(string)
	if !isText {
		return value.Equal(wanted, given)
	}
	for _, operator := range []string{">=", "<=", ">", "<"} {
		if bound, found := strings.CutPrefix(pattern, operator); found {
			if limit, err := strconv.ParseFloat(strings.TrimSpace(bound), 64); err == nil {
				return compares(operator, given, limit)
			}
		}
	}
	text, isText := given.(string)
	if !isText {
		encoded, err := value.Encode(given)
		if err != nil {
			return false
		}
		text = string(encoded)
	}
	return matchText(pattern, text)
}

// compares reports whether a number, or a text with one, is on the named side of a limit.
func compares(operator string, given any, limit float64) bool {
	n, ok := value.Float(given)
	if text, isText := given.(string); isText {
		var err error
		n, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
		ok = err == nil
	}
	switch {
	case !ok:
		return false
	case operator == ">=":
		return n >= limit
	case operator == "<=":
		return n <= limit
	case operator == ">":
		return n > limit
	}
	return n < limit
}

// matchText reports whether a text matches a pattern in which * stands for any text.
func matchText(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// permit applies the rules to a call: those of the agent, and those of the agents above
// it and before it in the conversation. The strictest decision counts.
func (a *agent) permit(ctx context.Context, at place, t *tool, arguments map[string]any) error {
	if t.run != nil && t.handOff == "" {
		return nil // it has no effect outside the conversation
	}
	without := ruleAllow
	if t.ask {
		without = ruleAsk
	}
	decision := decide(a.definition.Approve, t, arguments, without)
	for _, rules := range a.others() {
		if other := decide(rules, t, arguments, ruleAllow); strictness(other) > strictness(decision) {
			decision = other
		}
	}
	switch decision {
	case ruleDeny:
		return tea.Errorf(tea.PermissionDenied, "a rule denies this call of %s", t.name)
	case ruleAsk:
		return approve(ctx, a.call, at, a.title(), t, arguments)
	}
	return nil
}

// others returns the rules of the agents above, and of those that had the conversation
// before.
func (a *agent) others() [][]Rule {
	return slices.Concat(a.params.From.Approve, a.rules)
}

// allRules returns the rules that a delegated task takes over.
func (a *agent) allRules() [][]Rule {
	if len(a.definition.Approve) == 0 {
		return a.others()
	}
	return append(a.others(), a.definition.Approve)
}

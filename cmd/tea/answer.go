package main

import (
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/value"
)

func parseAnswers(list []string) (map[string]any, error) {
	answers := map[string]any{}
	for _, text := range list {
		id, raw, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usageErrorf("--answer %s: want ID=JSON", text)
		}
		answer, err := value.Decode([]byte(raw))
		if err != nil {
			return nil, usageErrorf("--answer %s: the answer is no JSON: %w; put text into quotes: %s='\"text\"'", text, err, id)
		}
		answers[id] = answer
	}
	return answers, nil
}

// answersOf finds the interrupts of a run that answers are meant for: each is
// named by the interrupt's id, or by its path or node where one alone has it.
func answersOf(runs *host.Runs, run string, given map[string]any) (map[string]any, error) {
	if len(given) == 0 {
		return nil, nil
	}
	contents, err := runs.Show(run)
	if err != nil {
		return nil, err
	}
	pending, err := host.Pending(contents)
	if err != nil {
		return nil, err
	}
	answers := map[string]any{}
	for name, answer := range given {
		i, err := interruptOf(pending, name)
		if err != nil {
			return nil, err
		}
		if _, twice := answers[i.ID]; twice {
			return nil, usageErrorf("--answer %s: %s is answered twice", name, i.ID)
		}
		answers[i.ID] = answer
	}
	return answers, nil
}

func interruptOf(pending []host.Interrupt, name string) (host.Interrupt, error) {
	var ids []string
	var found []host.Interrupt
	for _, i := range pending {
		if i.ID == name {
			return i, nil
		}
		ids = append(ids, i.ID)
		if i.Path == name || i.Node == name {
			found = append(found, i)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return host.Interrupt{}, usageErrorf("--answer %s: several interrupts there wait for an answer; name one of %s", name, strings.Join(ids, ", "))
	case len(ids) == 0:
		ids = []string{"none"}
	}
	return host.Interrupt{}, usageErrorf("no interrupt %q waits for an answer; waiting: %s", name, strings.Join(ids, ", "))
}

// exampleAnswer is an answer that fits a question, for a hint.
func exampleAnswer(i host.Interrupt) any {
	schema, _ := i.Schema.(map[string]any)
	allowed, _ := schema["enum"].([]any)
	candidates := slices.Concat(i.Choices, allowed, []any{i.Default, exampleOf(schema["type"])})
	for _, v := range candidates {
		if v != nil && i.Check(v) == nil {
			return v
		}
	}
	return exampleOf(schema["type"])
}

// exampleOf is a value of a type, as JSON Schema or as a state schema calls it.
func exampleOf(name any) any {
	switch name {
	case "boolean", "bool":
		return true
	case "integer", "int", "number", "float":
		return int64(1)
	case "array", "list":
		return []any{}
	case "object", "dict":
		return map[string]any{}
	}
	return "text"
}

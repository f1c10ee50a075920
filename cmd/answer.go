package teacmd

import (
	"errors"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host/flow"
)

func parseAnswers(list []string) (map[string]any, error) {
	answers := map[string]any{}
	for _, text := range list {
		id, raw, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usageErrorf("--answer %s: expected ID=JSON", text)
		}
		answer, err := decode([]byte(raw))
		switch {
		case errors.Is(err, errEncoding):
			return nil, usageErrorf("--answer %s: %w", id, err)
		case err != nil:
			return nil, usageErrorf("--answer %s: the answer is not JSON: %w; quote text: %s='\"text\"'", text, err, id)
		}
		answers[id] = answer
	}
	return answers, nil
}

// The values of --pass besides names of interrupts.
const (
	passAll  = "all"
	skipNone = "none"
)

// answersTo returns the answers by interrupt id: the given ones, and one for
// each stop that pass names. Without either, every pending stop is passed: the
// user saw them when the run stopped.
func answersTo(pending []flow.Interrupt, given map[string]any, pass []string) (map[string]any, error) {
	answers := map[string]any{}
	answer := func(flag, name string, value any) error {
		i, err := runview.Find(pending, name)
		if err != nil {
			return usageErrorf("%s %s: %w", flag, name, err)
		}
		if _, twice := answers[i.ID]; twice {
			return usageErrorf("%s %s: %s is answered twice", flag, name, i.ID)
		}
		if flag == "--pass" && i.Kind == flow.InterruptAsk {
			return usageErrorf("--pass %s: %s is a question; answer it with --answer", name, i.ID)
		}
		answers[i.ID] = value
		return nil
	}
	for name, value := range given {
		if err := answer("--answer", name, value); err != nil {
			return nil, err
		}
	}
	stops := stopsOf(pending)
	switch {
	case slices.Equal(pass, []string{skipNone}):
		return answers, nil
	case len(pass) == 0 && len(given) == 0:
		pass = stops
	case slices.Equal(pass, []string{passAll}):
		pass = slices.DeleteFunc(stops, func(id string) bool { _, given := answers[id]; return given })
	}
	for _, name := range pass {
		if err := answer("--pass", name, nil); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// stopsOf returns the ids of the interrupts before and after nodes.
func stopsOf(pending []flow.Interrupt) []string {
	var ids []string
	for _, i := range pending {
		if i.Kind != flow.InterruptAsk {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// exampleAnswer returns an answer to a question, for a hint.
func exampleAnswer(i flow.Interrupt) any {
	schema, _ := i.Schema.(map[string]any)
	example := exampleBy(schema)
	for _, v := range slices.Concat(i.Choices, []any{i.Default}) {
		if v != nil && i.Check(v) == nil {
			return v
		}
	}
	return example
}

// exampleBy returns a value that probably fits a schema: its own example, or
// the simplest value that it allows.
func exampleBy(schema map[string]any) any {
	list := func(key string) []any { all, _ := schema[key].([]any); return all }
	for _, v := range slices.Concat([]any{schema["const"], schema["default"]}, list("examples"), list("enum")) {
		if v != nil {
			return v
		}
	}
	v := exampleOf(schema["type"])
	switch v := v.(type) {
	case int64:
		if least := schema["minimum"]; least != nil {
			return least
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range list("required") {
			if name, ok := name.(string); ok {
				property, _ := properties[name].(map[string]any)
				v[name] = exampleBy(property)
			}
		}
	}
	return v
}

// exampleOf returns a value of a type of JSON Schema or of a state schema.
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

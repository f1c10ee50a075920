package engine

import (
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/jsonschema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Check says what is wrong with an answer to the interrupt: a
// validation_error where it is none of the choices or does not fit the
// schema. Only questions have either.
func (i Interrupt) Check(answer any) error {
	if len(i.Choices) > 0 && !contains(i.Choices, answer) {
		return tea.Errorf(tea.ValidationError, "the answer to %s must be one of %s", i.ID, brief(i.Choices))
	}
	if i.Schema == nil {
		return nil
	}
	schema, err := jsonschema.Compile(i.Schema)
	if err != nil {
		return tea.Errorf(tea.ValidationError, "the schema of %s: %w", i.ID, err)
	}
	if problems := schema.Validate(answer); len(problems) > 0 {
		return tea.Errorf(tea.ValidationError, "the answer to %s does not fit: %s", i.ID, jsonschema.Join(problems))
	}
	return nil
}

func contains(list []any, v any) bool {
	for _, e := range list {
		if value.Equal(e, v) {
			return true
		}
	}
	return false
}

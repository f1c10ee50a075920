package engine

import (
	"strings"

	"github.com/the-edge-agent/tea/host/internal/jsonschema"
	tea "github.com/the-edge-agent/tea/sdk"
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
	var faults []string
	for _, problem := range schema.Validate(answer) {
		faults = append(faults, strings.TrimPrefix(problem.Path+": "+problem.Message, ": "))
	}
	if len(faults) > 0 {
		return tea.Errorf(tea.ValidationError, "the answer to %s does not fit: %s", i.ID, strings.Join(faults, "; "))
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

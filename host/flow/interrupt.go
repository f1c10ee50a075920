package flow

import (
	"errors"
	"slices"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// InterruptKind is the reason why a run waits.
type InterruptKind string

// The kinds of interrupts.
const (
	InterruptBefore InterruptKind = "before"
	InterruptAfter  InterruptKind = "after"
	InterruptAsk    InterruptKind = "ask"
)

// Interrupt is a place where a run waits for an answer.
type Interrupt struct {
	// ID is the same in every resume.
	ID   string        `json:"id"`
	Kind InterruptKind `json:"kind"`
	Node string        `json:"node"`
	Path string        `json:"path"`
	// The following fields are set for human.ask.
	Question string `json:"question,omitempty"`
	// Context and Attachments are what the person should know.
	Context     any       `json:"context,omitempty"`
	Attachments []any     `json:"attachments,omitempty"`
	Schema      any       `json:"schema,omitempty"`
	Choices     []any     `json:"choices,omitempty"`
	Default     any       `json:"default,omitempty"`
	AskedAt     time.Time `json:"asked_at,omitzero"`
	// Deadline is when OnTimeout applies; zero = never.
	Deadline time.Time `json:"deadline,omitzero"`
	// OnTimeout is what happens then: deny, default or fail.
	OnTimeout string `json:"on_timeout,omitempty"`
}

// ErrNobody is the error of an Ask function when no one can answer: the run
// stops at the interrupt as it does without Ask, and can be resumed.
var ErrNobody = errors.New("no one is available to answer")

// Check checks an answer to the interrupt. The error is a validation_error if the
// answer is not one of the choices or does not match the schema.
func (i Interrupt) Check(answer any) error {
	if len(i.Choices) > 0 && !slices.ContainsFunc(i.Choices, func(c any) bool { return value.Equal(c, answer) }) {
		return tea.Errorf(tea.ValidationError, "the answer to %s must be one of %s", i.ID, value.Brief(i.Choices))
	}
	if i.Schema == nil {
		return nil
	}
	schema, err := jsonschema.Compile(i.Schema)
	if err != nil {
		return tea.Errorf(tea.ValidationError, "the schema of %s: %w", i.ID, err)
	}
	if problems := schema.Validate(answer); len(problems) > 0 {
		return tea.Errorf(tea.ValidationError, "the answer to %s is not valid: %s", i.ID, jsonschema.Join(problems))
	}
	return nil
}

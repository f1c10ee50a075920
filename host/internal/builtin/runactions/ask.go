package runactions

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/host/internal/jsonschema"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

type askParams struct {
	Question       string         `json:"question" doc:"what is asked"`
	Schema         map[string]any `json:"schema,omitempty" doc:"JSON Schema that an answer must fit"`
	Choices        []any          `json:"choices,omitempty" doc:"the answers that are allowed"`
	TimeoutSeconds float64        `json:"timeout_seconds,omitempty" minimum:"0" doc:"how long to wait; 0 = for ever"`
	OnTimeout      string         `json:"on_timeout,omitempty" enum:"deny,default,fail" default:"fail" doc:"what counts when nobody answers: false, the default, or a failure"`
	Default        any            `json:"default,omitempty" doc:"the answer of on_timeout: default"`
}

type askResult struct {
	Success    bool   `json:"success"`
	Answer     any    `json:"answer" doc:"what was answered"`
	AnsweredBy string `json:"answered_by" enum:"human,timeout" doc:"who answered"`
	TimedOut   bool   `json:"timed_out" doc:"whether on_timeout decided"`
}

func ask(ctx context.Context, req *tea.Request, p askParams) (askResult, error) {
	run, err := partOf[asker](req)
	if err != nil {
		return askResult{}, err
	}
	check, err := checker(p)
	if err != nil {
		return askResult{}, err
	}
	q := engine.Question{Text: p.Question, Deadline: time.Duration(p.TimeoutSeconds * float64(time.Second)), Check: check}
	if p.Schema != nil {
		q.Schema = p.Schema
	}
	if q.Choices, err = inModel(p.Choices); err != nil {
		return askResult{}, err
	}
	q.Default = p.Default
	answer, timedOut, err := run.Ask(ctx, q)
	if err != nil {
		return askResult{}, err
	}
	if !timedOut {
		return askResult{Success: true, Answer: answer, AnsweredBy: "human"}, nil
	}
	res := askResult{Success: true, AnsweredBy: "timeout", TimedOut: true}
	switch p.OnTimeout {
	case "deny":
		res.Answer = false
	case "default":
		res.Answer = p.Default
	default:
		failure := tea.Errorf(tea.Timeout, "nobody answered %q within %g s", p.Question, p.TimeoutSeconds)
		failure.Retryable = false
		return askResult{}, failure
	}
	return res, nil
}

func inModel(list []any) ([]any, error) {
	if list == nil {
		return nil, nil
	}
	v, err := value.From(list)
	if err != nil {
		return nil, err
	}
	return v.([]any), nil
}

// checker makes the check that an answer must pass.
func checker(p askParams) (func(any) error, error) {
	var schema *jsonschema.Schema
	if p.Schema != nil {
		object, err := value.From(p.Schema)
		if err != nil {
			return nil, err
		}
		if schema, err = jsonschema.Compile(object); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "schema: %w", err)
		}
	}
	choices, err := inModel(p.Choices)
	if err != nil {
		return nil, err
	}
	return func(answer any) error {
		if choices != nil && !contains(choices, answer) {
			text, err := json.Marshal(choices)
			if err != nil {
				return err
			}
			return tea.Errorf(tea.ValidationError, "the answer must be one of %s", text)
		}
		if schema == nil {
			return nil
		}
		var faults []string
		for _, problem := range schema.Validate(answer) {
			faults = append(faults, strings.TrimPrefix(problem.Path+": "+problem.Message, ": "))
		}
		if len(faults) > 0 {
			return tea.Errorf(tea.ValidationError, "the answer does not fit: %s", strings.Join(faults, "; "))
		}
		return nil
	}, nil
}

func contains(list []any, v any) bool {
	for _, e := range list {
		if value.Equal(e, v) {
			return true
		}
	}
	return false
}

package runactions

import (
	"context"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

type askParams struct {
	Question       string         `json:"question" doc:"the question"`
	Context        any            `json:"context,omitempty" doc:"what the person should know: a text in Markdown, or a value"`
	Attachments    []attachment   `json:"attachments,omitempty" maxItems:"100" doc:"texts and links that belong to the question"`
	Schema         map[string]any `json:"schema,omitempty" format:"json-schema" doc:"JSON Schema of the answer"`
	Choices        []any          `json:"choices,omitempty" minItems:"1" doc:"the allowed answers"`
	TimeoutSeconds float64        `json:"timeout_seconds,omitempty" minimum:"0" doc:"time to wait for the answer; 0 = no limit"`
	OnTimeout      string         `json:"on_timeout,omitempty" enum:"deny,default,fail" default:"fail" doc:"the answer after the timeout: false, the default, or a failure"`
	Default        any            `json:"default,omitempty" doc:"the answer with on_timeout: default, and for an empty line at a terminal; it must be a possible answer"`
}

type attachment struct {
	Name string `json:"name" doc:"the name that is shown"`
	Text string `json:"text,omitempty" doc:"the content"`
	URL  string `json:"url,omitempty" doc:"a link to the content, with http or https"`
}

type askResult struct {
	Success    bool   `json:"success"`
	Answer     any    `json:"answer" doc:"the answer"`
	AnsweredBy string `json:"answered_by" enum:"human,timeout" doc:"human, or timeout for an answer of on_timeout"`
	TimedOut   bool   `json:"timed_out" doc:"whether the question timed out"`
}

func ask(ctx context.Context, req *tea.Request, p askParams) (askResult, error) {
	run, err := partOf[asker](req)
	if err != nil {
		return askResult{}, err
	}
	q, err := question(req, p)
	if err != nil {
		return askResult{}, err
	}
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
		res.Answer = q.Default
	default:
		failure := tea.Errorf(tea.Timeout, "no answer to %q within %g s", p.Question, p.TimeoutSeconds)
		failure.Retryable = false
		return askResult{}, failure
	}
	return res, nil
}

// question reads the parameters in the value model, because Go types would turn
// their integers into floats.
func question(req *tea.Request, p askParams) (engine.Question, error) {
	q := engine.Question{Text: p.Question, Deadline: time.Duration(p.TimeoutSeconds * float64(time.Second)), OnTimeout: p.OnTimeout}
	v, err := req.Params.Value()
	if err != nil {
		return q, err
	}
	params, _ := v.(map[string]any)
	q.Choices, _ = params["choices"].([]any)
	q.Context = params["context"]
	q.Attachments, _ = params["attachments"].([]any)
	q.Schema, q.Default = params["schema"], params["default"]
	if _, given := params["default"]; !given && q.OnTimeout == "default" {
		return q, tea.Errorf(tea.ValidationError, "on_timeout: default needs the parameter default")
	}
	if q.Schema != nil {
		if _, err := jsonschema.Compile(q.Schema); err != nil {
			return q, tea.Errorf(tea.ValidationError, "schema: %w", err)
		}
	}
	if q.Default != nil || q.OnTimeout == "default" {
		if err := (flow.Interrupt{ID: "human.ask", Choices: q.Choices, Schema: q.Schema}).Check(q.Default); err != nil {
			return q, tea.Errorf(tea.ValidationError, "default: %w", err)
		}
	}
	return q, nil
}

//go:build js

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"syscall/js"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/jspromise"
)

// page has the callbacks of the JavaScript side.
type page struct{ js.Value }

// pageAction is an action that JavaScript implements.
type pageAction struct {
	Name       string          `json:"name"`
	Summary    string          `json:"summary"`
	Params     json.RawMessage `json:"params"`
	Idempotent bool            `json:"idempotent"`
}

func (a pageAction) action(p page) (tea.Action, error) {
	action := tea.Action{Name: a.Name, Summary: a.Summary, Idempotent: a.Idempotent}
	if len(a.Params) > 0 {
		action.Params = new(schema.Schema)
		if err := json.Unmarshal(a.Params, action.Params); err != nil {
			return action, fmt.Errorf("the parameters of the action %s: %w", a.Name, err)
		}
	}
	action.Handle = func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
		params, err := req.Params.JSON()
		if err != nil {
			return nil, err
		}
		text, err := jspromise.Await(ctx, p.Call("action", a.Name, string(params), req.IdempotencyKey))
		if err != nil {
			return nil, err
		}
		var answer struct {
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Type      tea.ErrorType  `json:"type"`
				Message   string         `json:"message"`
				Retryable bool           `json:"retryable"`
				Details   map[string]any `json:"details"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(text.String()), &answer); err != nil {
			return nil, fmt.Errorf("the result of the action %s: %w", a.Name, err)
		}
		if e := answer.Error; e != nil {
			failure := tea.Errorf(e.Type, "%s", e.Message)
			failure.Retryable, failure.Details = e.Retryable, e.Details
			return nil, failure
		}
		return &tea.Response{Result: tea.RawPayload(answer.Result)}, nil
	}
	return action, nil
}

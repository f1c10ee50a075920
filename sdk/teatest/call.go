package teatest

import (
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/conform"
)

// Request is one call of an action, as a workflow would make it.
type Request struct {
	// Action is the action's name.
	Action string
	// Params are the parameters: a map, a struct or raw JSON; nil means {}.
	Params any
	// Settings are the workflow's settings by top-level key, each a Go value or
	// raw JSON. The bundle gets only those that it declares.
	Settings map[string]any
	// Call identifies the call; Attempt 0 counts as 1.
	Call tea.Call
	// Host answers and records; nil means an empty [Host].
	Host *Host
}

// Call opens the bundle in this process, calls one action and closes the
// bundle. The result is in the value model (package value); the error is the
// action's, a [*tea.Error]. The test fails if the bundle fails its own check,
// or parameters or result have no JSON form.
//
// The context ends with the test.
func Call(t testing.TB, bundle tea.Bundle, req Request) (any, error) {
	t.Helper()
	conform.RouteLogs()
	if err := bundle.Check(); err != nil {
		t.Fatalf("teatest: %v", err)
	}
	instance, err := bundle.NewInstance(t.Context(), settings(t, req.Settings))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := instance.Close(); err != nil {
			t.Errorf("teatest: %v", err)
		}
	}()
	resp, err := instance.Invoke(t.Context(), toRequest(t, req))
	if err != nil {
		return nil, err
	}
	result, err := resp.Result.Value()
	if err != nil {
		t.Fatalf("teatest: result of %s: %v", req.Action, err)
	}
	return result, nil
}

func toRequest(t testing.TB, req Request) *tea.Request {
	t.Helper()
	if req.Params == nil {
		req.Params = map[string]any{}
	}
	params, err := tea.ValuePayload(req.Params).JSON()
	if err != nil {
		t.Fatalf("teatest: parameters of %s: %v", req.Action, err)
	}
	if req.Host == nil {
		req.Host = &Host{}
	}
	req.Call.Attempt = max(req.Call.Attempt, 1)
	return &tea.Request{Action: req.Action, Params: tea.RawPayload(params), Call: req.Call, Host: req.Host}
}

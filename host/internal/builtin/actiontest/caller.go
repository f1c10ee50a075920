// Package actiontest calls the host's own actions in tests as the host does:
// through their handler, with settings and parameters as JSON. Start with
// [Open].
package actiontest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Caller calls the actions of one opened bundle. It is safe for concurrent use.
type Caller struct {
	t        testing.TB
	bundle   *tea.Bundle
	instance any
	// IdempotencyKey is sent with every call.
	IdempotencyKey string
}

// Open checks and opens a bundle with settings, by top-level key. It is closed
// at the end of the test.
func Open(t testing.TB, bundle *tea.Bundle, settings map[string]any) *Caller {
	t.Helper()
	c, err := TryOpen(t, bundle, settings)
	if err != nil {
		t.Fatalf("open %s: %v", bundle.Name, err)
	}
	return c
}

// TryOpen is [Open] for settings that can be invalid.
func TryOpen(t testing.TB, bundle *tea.Bundle, settings map[string]any) (*Caller, error) {
	t.Helper()
	if err := bundle.Check(); err != nil {
		t.Fatal(err)
	}
	c := &Caller{t: t, bundle: bundle}
	if bundle.Open == nil {
		return c, nil
	}
	given := tea.Settings{}
	for key, v := range settings {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		given[key] = raw
	}
	instance, err := bundle.Open(t.Context(), given)
	if err != nil {
		return nil, err
	}
	c.instance = instance
	if closer, ok := instance.(io.Closer); ok {
		t.Cleanup(func() {
			if err := closer.Close(); err != nil {
				t.Errorf("close %s: %v", bundle.Name, err)
			}
		})
	}
	return c, nil
}

// logger is a host that writes log records to the test's log.
type logger struct {
	tea.Host
	t testing.TB
}

func (l logger) Log(_ context.Context, level slog.Level, message string, _ map[string]any) {
	l.t.Log(level, message)
}

// Params are an action's parameters.
type Params = map[string]any

// Call calls an action and returns its result in the value model.
func (c *Caller) Call(ctx context.Context, action string, params Params) (map[string]any, error) {
	c.t.Helper()
	found := c.bundle.Find(action)
	if found == nil {
		c.t.Fatalf("unknown action %s", action)
	}
	raw, err := value.From(params)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := found.Handle(ctx, &tea.Request{
		Action: action, Params: tea.ValuePayload(raw), Host: logger{t: c.t}, Instance: c.instance, Call: tea.Call{IdempotencyKey: c.IdempotencyKey, Attempt: 1},
	})
	if err != nil {
		return nil, err
	}
	result, err := resp.Result.Value()
	if err != nil {
		c.t.Fatalf("result of %s: %v", action, err)
	}
	object, ok := result.(map[string]any)
	if !ok || object["success"] != true {
		c.t.Fatalf("result of %s does not have success: true: %v", action, result)
	}
	return object, nil
}

// Must is [Caller.Call] for a call that succeeds.
func (c *Caller) Must(action string, params Params) map[string]any {
	c.t.Helper()
	result, err := c.Call(c.t.Context(), action, params)
	if err != nil {
		c.t.Fatalf("%s: %v", action, err)
	}
	return result
}

// Fails is [Caller.Call] for a call that fails with an error of a type.
func (c *Caller) Fails(want tea.ErrorType, action string, params Params) *tea.Error {
	c.t.Helper()
	result, err := c.Call(c.t.Context(), action, params)
	if err == nil {
		c.t.Fatalf("%s succeeds with %v, want a %s", action, result, want)
	}
	e := tea.AsError(err)
	if e.Type != want {
		c.t.Fatalf("%s fails with %v, want a %s", action, e, want)
	}
	return e
}

package teatest_test

import (
	"context"
	"testing"

	"github.com/the-edge-agent/tea/sdk/teatest"
)

// Samples see the same log records in both ways, those of slog included.
func TestSlogConforms(t *testing.T) {
	t.Parallel()
	upper := func(context.Context, any) (any, error) { return map[string]any{"text": "HEY"}, nil }
	teatest.Conformance(t, shoutBundle(), teatest.Request{
		Action: "shout.twice", Params: shout{Text: "hey"},
		Host: &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){"text.upper": upper}},
	})
}

// The SDK's own bundle of probes must pass the whole suite over both
// transports: the protocol is what this test says it is.
func TestProbeConforms(t *testing.T) {
	t.Parallel()
	teatest.Conformance(t, teatest.Probe(),
		teatest.Request{Action: "probe.greet", Params: map[string]any{"name": "Ada"}},
		teatest.Request{Action: "probe.greet", Params: map[string]any{"nam": "Ada"}},
		teatest.Request{Action: "probe.stream", Params: map[string]any{"tokens": 3}},
		teatest.Request{Action: "probe.settings", Settings: map[string]any{"probe": map[string]any{"a": 1}}},
		teatest.Request{Action: "probe.fail", Params: map[string]any{"type": "x", "message": "no", "details": map[string]any{"n": 1.0}}},
		teatest.Request{
			Action: "probe.invoke", Params: map[string]any{"action": "a.b", "params": []any{1, nil}},
			Host: &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){
				"a.b": func(_ context.Context, params any) (any, error) { return params, nil },
			}},
		},
	)
}

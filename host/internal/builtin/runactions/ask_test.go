package runactions

import (
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Without this check null would count as an answer.
func TestDefaultIsRequiredIfItMayBeUsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		params  map[string]any
		refused bool
	}{
		{"no default", map[string]any{"question": "go?", "timeout_seconds": 1.0, "on_timeout": "default"}, true},
		{"null is one", map[string]any{"question": "go?", "timeout_seconds": 1.0, "on_timeout": "default", "default": nil}, false},
		{"a default", map[string]any{"question": "go?", "timeout_seconds": 1.0, "on_timeout": "default", "default": "no"}, false},
		{"a default that is not a choice", map[string]any{"choices": []any{"yes", "no"}, "default": "maybe", "on_timeout": "deny"}, true},
		{"null is not a choice", map[string]any{"choices": []any{"yes", "no"}, "default": nil, "on_timeout": "default"}, true},
		{"a choice", map[string]any{"choices": []any{"yes", "no"}, "default": "no"}, false},
		{"a default that does not fit", map[string]any{"schema": map[string]any{"type": "boolean"}, "default": "no"}, true},
		{"a default that fits", map[string]any{"schema": map[string]any{"type": "boolean"}, "default": false}, false},
		{"not needed", map[string]any{"question": "go?", "timeout_seconds": 1.0, "on_timeout": "deny"}, false},
	} {
		onTimeout, _ := c.params["on_timeout"].(string)
		_, err := question(&tea.Request{Params: tea.ValuePayload(c.params)}, askParams{Question: "go?", TimeoutSeconds: 1, OnTimeout: onTimeout})
		e := tea.AsError(err)
		if (e != nil) != c.refused || c.refused && (e.Type != tea.ValidationError || !strings.Contains(e.Message, "default")) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

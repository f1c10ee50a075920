package httpapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

// A key of one character was masked inside other words.
func TestShortSecretsDoNotChangeWords(t *testing.T) {
	t.Parallel()
	e := &tea.Error{Message: "lookup of k with very-secret-key", Details: map[string]any{"body": "ok very-secret-key", "status": 400}}
	redact(e, []string{"", "k", "none", "very-secret-key"})
	if got, want := e.Message, "lookup of k with ***"; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
	if d := cmp.Diff(map[string]any{"body": "ok ***", "status": 400}, e.Details); d != "" {
		t.Errorf("details (-want +got):\n%s", d)
	}
}

//go:build unix

package llm_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func commands() map[string]any {
	sh := func(script string) map[string]any { return map[string]any{"argv": []any{"sh", "-c", script}} }
	return map[string]any{"provider": "command", "model": "echo", "commands": map[string]any{
		"echo": map[string]any{"argv": []any{"cat"}}, "list": sh(`echo '["a", "b"]'`), "broken": sh("echo no key >&2; exit 2"), "slow": sh("sleep 1000"),
	}}
}

func TestProviderCommand(t *testing.T) {
	t.Parallel()
	host := new(teatest.Host)
	got, err := call(t, host, "llm.stream", commands(), map[string]any{"system": "be brief", "prompt": "$(id)", "temperature": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if got["content"] != "be brief\n\n$(id)" || got["provider"] != "command" || got["model"] != "echo" || got["usage"].(map[string]any)["estimated"] != true {
		t.Errorf("got %v", got)
	}
	if diff := gocmp.Diff([]any{"temperature"}, got["not_sent"]); diff != "" {
		t.Error(diff)
	}
	if text := host.Recorded().Text(); text != "be brief\n\n$(id)" {
		t.Errorf("tokens %q", text)
	}
	// By a name in the call, with a form of the answer.
	got, err = call(t, nil, "llm.call", map[string]any{"commands": commands()["commands"]}, map[string]any{
		"model": "command/list", "prompt": "x", "schema": map[string]any{"type": "array"},
	})
	if err != nil || gocmp.Diff([]any{"a", "b"}, got["data"]) != "" {
		t.Errorf("got %v, %v", got, err)
	}
	// It falls back when the program fails.
	got, err = call(t, nil, "llm.call", commands(), map[string]any{"model": "broken", "fallbacks": []any{"echo"}, "prompt": "hi"})
	if err != nil || got["content"] != "hi" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestProviderCommandRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		action  string
		params  map[string]any
		want    tea.ErrorType
		message string
	}{
		{"llm.call", map[string]any{"prompt": "x", "model": "broken"}, "command_failed", "exit code 2: no key"},
		{"llm.call", map[string]any{"prompt": "x", "model": "slow", "timeout_seconds": 0.05}, tea.Timeout, "timeout_seconds"},
		{"llm.call", map[string]any{"prompt": "x", "model": "sh"}, tea.ValidationError, `"sh" is not in settings.llm.commands`},
		{"llm.call", map[string]any{"prompt": "x", "model": "eco"}, tea.ValidationError, `did you mean "echo"?`},
		{"llm.call", map[string]any{"prompt": "x", "commands": map[string]any{"echo": map[string]any{"argv": []any{"id"}}}}, tea.ValidationError, "commands"},
		{"llm.call", map[string]any{"messages": []any{map[string]any{"role": "user", "content": media()}}}, tea.ValidationError, "images and files"},
		{"llm.call", map[string]any{"prompt": strings.Repeat("x", 100), "max_answer_bytes": 50}, tea.ResourceExhausted, "max_answer_bytes"},
		{"llm.tools", map[string]any{"prompt": "x", "tools": []any{"math.add"}}, tea.ValidationError, "has no tools"},
		{"embedding.create", map[string]any{"input": "x"}, tea.ValidationError, "has no embeddings"},
	} {
		host := adder()
		if _, err := call(t, host, test.action, commands(), test.params); err == nil || err.Type != test.want || !strings.Contains(err.Message, test.message) {
			t.Errorf("%s %v: got %v", test.action, test.params, err)
		}
	}
}

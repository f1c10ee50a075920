//go:build linux

package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// An agent keeps its conversations and notes in the memory between runs.
func TestAgentRemembers(t *testing.T) {
	t.Parallel()
	var requests []string
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct{ Role, Content string }
		}
		_ = json.NewDecoder(r.Body).Decode(&req) // an empty request gets another answer, which fails the test
		var lines []string
		for _, m := range req.Messages {
			lines = append(lines, m.Role+" "+strings.TrimSpace(m.Content))
		}
		requests = append(requests, strings.Join(lines, "|")) // the agent asks one question at a time
		message := map[string]any{"content": "ok"}
		call := func(name, arguments string) {
			message["tool_calls"] = []any{map[string]any{"id": "c1", "type": "function", "function": map[string]any{"name": name, "arguments": arguments}}}
		}
		switch lines[len(lines)-1] {
		case "user keep it":
			call("memory_store", `{"name": "seal", "text": "The seal of pump 7 leaks."}`)
		case "user what leaks?":
			call("memory_search", `{"query": "leaks"}`)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"model": "m", "choices": []any{map[string]any{"message": message, "finish_reason": "stop"}}})
	}))
	t.Cleanup(model.Close)
	dir := t.TempDir()
	flow := filepath.Join(dir, "flow.yaml")
	text := `
settings:
  memory: {path: memory}
  llm: {model: m, api_base: ` + model.URL + `/v1, agents: {clerk: {memory: true}}}
nodes:
  - {name: go, uses: agent.run, with: {agent: clerk, prompt: "{{ state.prompt }}", session: "{{ state.session }}"}, output: {}}
`
	if err := os.WriteFile(flow, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, run := range []struct{ session, prompt string }{{"a", "keep it"}, {"a", "and?"}, {"b", "what leaks?"}} {
		p := teaproc.Process{Program: filepath.Join(bin, "tea"), Args: []string{
			"run", flow, "--plugins", bin, "-c", filepath.Join(dir, "runs"), "-i", fmt.Sprintf(`{"session": %q, "prompt": %q}`, run.session, run.prompt),
		}, Saw: func(teaproc.Event) {}}
		if end := p.Run(t); end.Code != 0 {
			t.Fatalf("%v: exit code %d\n%s", run, end.Code, end.Stderr)
		}
	}
	want := []string{
		"user keep it", "user keep it|assistant ok|tool The note is kept.",
		"user keep it|assistant ok|tool The note is kept.|assistant ok|user and?",
		"user what leaks?", "user what leaks?|assistant ok|tool seal: The seal of pump 7 leaks.",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

//go:build linux

package plan

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// ollamaURL starts a real Ollama. Without one the test is skipped; in CI that is
// a failure.
func ollamaURL(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	programs, _ := filepath.Glob(filepath.Join(cache, "tea", "tools", "ollama-*", "ollama"))
	if len(programs) == 0 && os.Getenv("TEA_OLLAMA") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("Ollama is not installed; run scripts/ollama install")
		}
		t.Skip("Ollama is not installed; run scripts/ollama install")
	}
	serve := exec.CommandContext(t.Context(), "../../scripts/ollama", "serve")
	serve.Stderr = t.Output()
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	serve.WaitDelay = 10 * time.Second
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Wait() }) // the test's context has ended it
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("scripts/ollama serve printed no address: %v", err)
	}
	return strings.TrimSpace(url)
}

// A real model makes a plan in the form that the schema demands, and real models
// execute it.
func TestPlanOfARealModel(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "needs a real server")
	dir := t.TempDir()
	write(t, dir, `
settings: {llm: {provider: ollama, model: tiny, api_base: "`+ollamaURL(t)+`"}}
nodes:
  - name: plan
    uses: plan.decompose
    with: {goal: Make tea, planner: {model: tiny-plan, temperature: 0}}
    output: {plan: "{{ result.plan }}", attempts: "{{ result.attempts }}"}
  - name: execute
    uses: plan.execute
    with:
      plan: "{{ state.plan }}"
      subtask_executor: {action: llm.call, with: {prompt: "{{ subtask.description }}"}, output: "{{ subtask.id }}: {{ result.content }}"}
    output: {results: "{{ result.subtask_results }}"}
  - name: again
    uses: plan.execute
    with: {plan: "{{ state.plan }}", subtask_executor: {action: llm.call, with: {prompt: "{{ subtask.description }}"}}}
    output: {answers: "{{ result.subtask_results }}"}
`)
	stdout, stderr, code := tea(t, dir, "run", "flow.yaml", "-q")
	if code != 0 {
		t.Fatal(stderr)
	}
	var state struct {
		Attempts int               `json:"attempts"`
		Results  map[string]string `json:"results"`
		Answers  map[string]any    `json:"answers"`
	}
	if err := json.Unmarshal([]byte(stdout), &state); err != nil {
		t.Fatal(err)
	}
	const said = "The sensor in room 7 reports 21 degrees ☀ outside."
	answer := map[string]any{"content": said}
	if diff := cmp.Diff(map[string]any{"boil": answer, "pour": answer}, state.Answers); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{"boil": "boil: " + said, "pour": "pour: " + said}
	if diff := cmp.Diff(want, state.Results); diff != "" || state.Attempts != 1 {
		t.Errorf("%d attempts:\n%s", state.Attempts, diff)
	}
}

package teacmd

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

const eventful = `
config: {interrupt_after: [ask]}
nodes:
  - {name: skipped, if: "false", run: "return {}"}
  - name: loop
    type: while_loop
    condition: (state.n or 0) < 2
    max_iterations: 5
    body: [{name: inc, run: "tea.log('info', 'again', {n = state.n}) return {n = (state.n or 0) + 1}"}]
  - name: flaky
    uses: http.get
    with: {url: "http://127.0.0.1:1/"}
    retry: {max_retries: 1, backoff_base_ms: 1}
    on_error: continue
  - name: fan
  - {name: good, run: "return {}"}
  - {name: bad, run: "error('no')"}
  - {name: join, run: "return {branches = #parallel_results}"}
  - name: ask
    uses: human.ask
    with: {question: "Go on?", choices: [true, false], timeout_seconds: 60}
edges:
  - {from: fan, parallel: [good, bad], fan_in: join}
  - {from: good, to: join}
  - {from: bad, to: join}
`

// Every line of a real stream fits the schema in the documentation, which
// knows every event there was.
func TestStreamFitsSchema(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "docs", "reference", "events.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	fields := fieldsOf(t, raw)
	dir := workdir(t, map[string]string{"flow.yaml": eventful})
	cmd := exec.Command("tea", "run", "-s", "flow.yaml", "-c", "runs")
	cmd.Dir = dir
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 130 {
		t.Fatalf("exit: %v\n%s", err, out)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if err := resolved.Validate(event); err != nil {
			t.Errorf("%v\n%s", err, line)
		}
		kind := event["event"].(string)
		seen[kind] = true
		for field := range event {
			if !fields[kind][field] && !fields[""][field] {
				t.Errorf("the schema does not tell of %s in %s", field, kind)
			}
		}
	}
	for _, event := range []string{
		"run_start", "node_start", "node_end", "node_error", "retry", "branch_start", "branch_end", "loop", "log", "interrupt", "checkpoint", "run_end",
	} {
		if !seen[event] {
			t.Errorf("the stream has no %s", event)
		}
	}
	bad := map[string]any{"seq": 1, "ts": "2026-01-01T00:00:00Z", "run_id": "r", "event": "node_end"}
	if resolved.Validate(bad) == nil {
		t.Error("the schema takes a node_end without a node")
	}
}

// fieldsOf returns the fields that the schema names for each event; "" are those
// of every event.
func fieldsOf(t *testing.T, raw []byte) map[string]map[string]bool {
	t.Helper()
	type properties map[string]any
	var s struct {
		Properties properties
		AllOf      []struct {
			If struct {
				Properties struct {
					Event struct {
						Const string
						Enum  []string
					}
				}
			}
			Then struct{ Properties properties }
		}
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	fields := map[string]map[string]bool{}
	add := func(event string, p properties) {
		if fields[event] == nil {
			fields[event] = map[string]bool{}
		}
		for field := range p {
			fields[event][field] = true
		}
	}
	add("", s.Properties)
	for _, rule := range s.AllOf {
		for _, event := range append(rule.If.Properties.Event.Enum, rule.If.Properties.Event.Const) {
			add(event, rule.Then.Properties)
		}
	}
	return fields
}

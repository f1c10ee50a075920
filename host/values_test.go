package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// returnParams is an action that returns or refuses its parameters.
var returnParams = tea.Action{Name: "test.echo", Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
	v, err := req.Params.Value()
	if m, _ := v.(map[string]any); m["fail"] == true {
		return nil, tea.Errorf(tea.ValidationError, "refused")
	}
	return tea.Respond(v), err
}}

// storedValues returns the params and results that the log of a run has, by path.
func storedValues(t *testing.T, s *session, run string) map[string]map[string]any {
	t.Helper()
	runs, err := checkpoints.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	events, err := runs.OpenEvents(run, 0)
	if err != nil {
		t.Fatal(err)
	}
	events.Values = true
	all := map[string]map[string]any{}
	err = events.Next(func(_ int64, line []byte) error {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e["event"] == string(flow.EventValues) {
			all[e["path"].(string)] = e
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheLogHasWhatANodeWasCalledWithAndReturned(t *testing.T) {
	t.Parallel()
	const text = `
nodes:
  - {name: lua, run: 'return {word = "pear"}'}
  - {name: call, uses: test.echo, with: {key: "{{ secrets.key }}", word: "{{ state.word }}"}, output: a}
  - {name: fail, uses: test.echo, with: {fail: true, key: "({{ secrets.key }})"}, on_error: continue}
  - {name: none, run: 'return {}'}
  - {name: stop, interrupt: before}
`
	for _, d := range []flow.Durability{flow.DurabilitySync, flow.DurabilityExit} {
		s := newSession(t, text, returnParams)
		streamed := 0
		res := s.run(host.RunOptions{Durability: d, Secrets: map[string]any{"key": "open-sesame"}, Events: func(e flow.Event) {
			if e.Type == flow.EventValues {
				streamed++
			}
		}})
		got := storedValues(t, s, res.RunID)
		for path, want := range map[string]string{
			"lua":  `{"result":{"word":"pear"}}`,
			"call": `{"params":{"key":"***","word":"pear"},"result":{"key":"***","word":"pear"}}`,
			"fail": `{"params":{"fail":true,"key":"(***)"}}`,
		} {
			for key := range got[path] {
				if key != "params" && key != "result" {
					delete(got[path], key)
				}
			}
			if raw, _ := json.Marshal(got[path]); string(raw) != want {
				t.Errorf("%s: %s has %s, want %s", d, path, raw, want)
			}
		}
		if got["none"] != nil || streamed > 0 {
			t.Errorf("%s: values of the empty node: %v, streamed values: %d", d, got["none"], streamed)
		}
	}
}

func TestLongValuesAreCutWithTheirSize(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
settings: {events: {value_kb: 1}}
nodes:
  - name: call
    uses: test.echo
    with: {text: "{{ state.text }}", list: "{{ state.list }}", secret: "{{ state.before ~ secrets.key }}"}
    output: a
state_schema: {text: str, list: list, before: str}
`, returnParams)
	list := make([]any, 500)
	for i := range list {
		list[i] = map[string]any{"n": int64(i)}
	}
	res := s.run(host.RunOptions{Secrets: map[string]any{"key": "open-sesame"}, Input: map[string]any{
		"text": strings.Repeat("é", 5000), "list": list, "before": strings.Repeat("-", 100),
	}})
	raw, err := json.Marshal(storedValues(t, s, res.RunID)["call"])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"elements]", "of 10000 bytes]"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %q in %s", want, raw)
		}
	}
	if len(raw) > 4<<10 || strings.Contains(string(raw), "sesame") || strings.Contains(string(raw), "�") {
		t.Errorf("%d bytes: %s", len(raw), raw)
	}
}

func TestValuesLeaveRoomForEvents(t *testing.T) {
	t.Parallel()
	for setting, most := range map[string]int{"value_kb: 0": 0, "max_mb: 1": 512 << 10} {
		s := newSession(t, `
settings: {events: {`+setting+`}}
initial_state: {n: 0}
nodes:
  - name: l
    type: while_loop
    condition: state.n < 100
    max_iterations: 100
    body:
      - {name: a, uses: test.echo, with: {text: "{{ state.text }}"}, output: a}
      - {name: i, run: "return {n = state.n + 1}"}
state_schema: {text: str, n: int}
`, returnParams)
		res := s.run(host.RunOptions{Input: map[string]any{"text": strings.Repeat("x", 10000)}})
		text, err := os.ReadFile(filepath.Join(s.dir, res.RunID+".events.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "run_end") || strings.Contains(string(text), "missing from here") || len(text) > most+100<<10 {
			t.Errorf("%s: the log has %d bytes", setting, len(text))
		}
		if got := len(storedValues(t, s, res.RunID)); (got == 0) != (most == 0) {
			t.Errorf("%s: values of %d nodes", setting, got)
		}
	}
}

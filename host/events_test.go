package host_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	tea "github.com/the-edge-agent/tea/sdk"
)

// speak is an action that streams tokens of a few bytes.
var speak = tea.Action{Name: "test.speak", Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	v, err := req.Params.Value()
	if err != nil {
		return nil, err
	}
	n, _ := v.(map[string]any)["tokens"].(int64)
	times, _ := v.(map[string]any)["times"].(int64)
	for i := range n {
		req.Host.Token(ctx, strings.Repeat(fmt.Sprintf("%03dé", i%1000)[i%3:], max(1, int(times))))
	}
	return tea.Respond(map[string]any{"said": n}), nil
}}

// recordEvents runs a workflow and returns its events as they were streamed, the file
// that they were stored in, and how to read them.
func recordEvents(t *testing.T, s *session, o host.RunOptions) (live []string, file string, read func(after int64) []string) {
	t.Helper()
	o.Events = func(e flow.Event) { live = append(live, brief(t, mustMarshal(t, e))) }
	res := s.run(o)
	return live, filepath.Join(s.dir, res.RunID+".events.jsonl"), reader(t, s, res.RunID)
}

func reader(t *testing.T, s *session, run string) func(after int64) []string {
	return func(after int64) []string {
		t.Helper()
		runs, err := checkpoints.Open(s.dir)
		if err != nil {
			t.Fatal(err)
		}
		lines := []string{}
		err = runs.Events(run, after, func(_ int64, line []byte) error {
			lines = append(lines, brief(t, line))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
}

func mustMarshal(t *testing.T, e flow.Event) []byte {
	t.Helper()
	line, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// brief is an event without its time, which tokens share.
func brief(t *testing.T, line []byte) string {
	t.Helper()
	before, rest, ok := strings.Cut(string(line), `,"ts":"`)
	_, after, _ := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("an event without ts: %s", line)
	}
	return before + after
}

func TestStoredTokensReadAsTheyWereStreamed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"one stream": "nodes: [{name: a, uses: test.speak, with: {tokens: 5000}}]",
		"two streams at once": `
nodes: [{name: s}, {name: a, uses: test.speak, with: {tokens: 2500}}, {name: b, uses: test.speak, with: {tokens: 2500}}, {name: j}]
edges: [{from: s, parallel: [a, b], fan_in: j}]`,
		"single tokens": `
initial_state: {n: 0}
nodes: [{name: l, type: while_loop, condition: state.n < 300, max_iterations: 300, body: [{name: a, uses: test.speak, with: {tokens: 1}}, {name: i, run: "return {n = state.n + 1}"}]}]
config: {max_steps: 5000}`,
	} {
		for _, d := range []flow.Durability{flow.DurabilitySync, flow.DurabilityExit} {
			t.Run(name+" "+string(d), func(t *testing.T) {
				t.Parallel()
				s := newSession(t, text+"\nbudget: {steps: 100000}", speak)
				o := host.RunOptions{Durability: d}
				if d == flow.DurabilityExit {
					o.InterruptAfter = []string{"a", "j", "l"} // so that the run is kept
				}
				live, file, read := recordEvents(t, s, o)
				if diff := cmp.Diff(live, read(0)); diff != "" {
					t.Fatalf("stored events (-streamed +stored):\n%.2000s", diff)
				}
				for after := 0; after < len(live); after += max(1, len(live)/20) {
					if diff := cmp.Diff(live[after:], read(int64(after))); diff != "" {
						t.Fatalf("events after %d (-streamed +stored):\n%.2000s", after, diff)
					}
				}
				info, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				if most := int64(5000 * 15); name != "single tokens" && info.Size() > most {
					t.Errorf("the log of %d events takes %d bytes, want at most %d", len(live), info.Size(), most)
				}
			})
		}
	}
}

func TestEventLogIsBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"tokens": "nodes: [{name: a, uses: test.speak, with: {tokens: 2000, times: 300}}, {name: b}]",
		"events": `
nodes: [{name: l, type: while_loop, condition: "true", max_iterations: 900, on_max: stop, body: [{name: a, run: "tea.log('info', string.rep('x', 2000))"}]}]
config: {max_steps: 100000}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, text+"\nsettings: {events: {max_mb: 1}}", speak)
			live, file, read := recordEvents(t, s, host.RunOptions{InterruptAfter: []string{"b", "l"}})
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if most := int64(1<<20 + 64<<10); info.Size() > most || info.Size() < 1<<19 {
				t.Errorf("the log has %d bytes, want at most %d", info.Size(), most)
			}
			stored := read(0)
			if got := stored[len(stored)-1]; got != live[len(live)-1] || !strings.Contains(got, `"run_end"`) {
				t.Errorf("the last stored event is %s, want that of the run", got)
			}
			notes := 0
			for i, line := range stored {
				if strings.Contains(line, "events are missing from here on") {
					notes++
					if !strings.Contains(line, "its limit of 1 MB (settings.events.max_mb)") {
						t.Errorf("the note does not say why: %s", line)
					}
					if diff := cmp.Diff(live[:i], stored[:i]); diff != "" {
						t.Errorf("before the note (-streamed +stored):\n%.2000s", diff)
					}
				}
			}
			if notes != 1 {
				t.Errorf("%d notes that events are missing, want 1", notes)
			}
		})
	}
}

// The last tokens of a run that was killed were streamed and not stored: a
// reader who has seen them must not take the next events for old ones.
func TestEventsOfAKilledRunContinueAfterItsLast(t *testing.T) {
	t.Parallel()
	s := newSession(t, "nodes: [{name: a}, {name: b}]")
	live, file, _ := recordEvents(t, s, host.RunOptions{})
	runs, err := checkpoints.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	run := strings.TrimSuffix(filepath.Base(file), ".events.jsonl")
	contents, err := runs.Show(run)
	if err != nil {
		t.Fatal(err)
	}
	store, err := checkpoint.OpenStore(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	journal, _, err := store.Fork(contents, 2, "killed", flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store.EventsPath("killed"), stored[:bytes.LastIndexByte(stored[:len(stored)-1], '\n')+1], 0o600); err != nil {
		t.Fatal(err)
	}
	s.resume("killed", host.RunOptions{})
	got := reader(t, s, "killed")(int64(len(live) + 900))
	if len(got) == 0 || !strings.Contains(got[0], `"resumed":true`) {
		t.Errorf("events behind those that may have been seen: %q, want all of the resume", got)
	}
}

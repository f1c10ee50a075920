package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// load loads a workflow from a text.
func (s *site) load(text string) *host.Workflow {
	s.t.Helper()
	wf, err := s.worker.workflows.host.Load(write(s.t, "flow.yaml", text), host.LoadOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = wf.Close() })
	return wf
}

// run runs a workflow until it ends or waits.
func (s *site) run(ctx context.Context, text string, o host.RunOptions) *flow.Result {
	s.t.Helper()
	o.RunID = host.NewRunID()
	res, err := Engine{}.Run(ctx, s.flags, teacmd.Job{Workflow: s.load(text), Options: o})
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

// history returns the history of the last execution of a run.
func (s *site) history(run string) (size int, text string) {
	s.t.Helper()
	about, err := s.describe(s.t.Context(), run, "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range s.histories(run, about.GetWorkflowExecutionInfo().GetFirstRunId()) {
		size += proto.Size(h)
		raw, err := protojson.Marshal(h)
		if err != nil {
			s.t.Fatal(err)
		}
		text += string(raw)
	}
	return size, text
}

func TestSecretsDoNotReachTheHistory(t *testing.T) {
	t.Parallel()
	const key = "sk-hidden-4711"
	h, p := newHost(t)
	secrets := map[string]any{"key": key}
	s := newSite(t, h, secrets)
	var events []string
	res := s.run(t.Context(), `
nodes:
  - {name: call, uses: probe.call, with: {value: "Bearer {{ secrets.key }}"}, output: got}
  - {name: lua, run: 'return {again = state.got.value .. "!"}'}
  - {name: more, uses: probe.through, with: {value: "{{ state.again }}"}, output: more}
  - {name: fail, uses: json.parse, with: {text: "{{ secrets.key }}"}, on_error: continue}
`, host.RunOptions{Secrets: secrets, Input: map[string]any{"given": key}, Events: func(e flow.Event) {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Error(err)
		}
		events = append(events, string(raw))
	}})
	if res.Status != flow.Done || res.State["again"] != "Bearer ***!" {
		t.Errorf("got %s %v, %v", res.Status, res.State, res.Err)
	}
	if calls := p.take(res.RunID); len(calls) != 2 {
		t.Errorf("the probe was called as %q", calls)
	}
	// Payloads are Base64 in the JSON of a history.
	_, history := s.history(res.RunID)
	var decoded strings.Builder
	if err := payloads(&decoded, history); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(decoded.String(), "probe.call") {
		t.Fatal("the history was not decoded")
	}
	for place, text := range map[string]string{"history": history, "payloads": decoded.String(), "events": strings.Join(events, "\n"), "state": fmt.Sprint(res.State)} {
		if strings.Contains(text, key) {
			t.Errorf("the %s contain the secret", place)
		}
	}
}

// payloads writes the data of all payloads in the JSON of a history.
func payloads(w *strings.Builder, history string) error {
	decoder := json.NewDecoder(strings.NewReader(history))
	for decoder.More() {
		var v any
		if err := decoder.Decode(&v); err != nil {
			return err
		}
		walk(v, func(data []byte) { w.Write(data) })
	}
	return nil
}

func walk(v any, found func([]byte)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			walk(e, found)
		}
	case map[string]any:
		for key, e := range v {
			text, ok := e.(string)
			var data []byte
			if ok && key == "data" && json.Unmarshal([]byte(`"`+text+`"`), &data) == nil {
				found(data)
				continue
			}
			walk(e, found)
		}
	}
}

func TestLargeResultsAreOutsideOfTheHistory(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{Actions: []tea.Action{host.Func("big.make", "Makes a text.", func(context.Context, map[string]any) (any, error) {
		return map[string]any{"text": strings.Repeat("0123456789abcdef", 1<<20)}, nil // 16 MiB
	})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := newSite(t, h, nil)
	res := s.run(t.Context(), `
nodes:
  - {name: make, uses: big.make, output: big}
  - {name: size, run: 'return {size = #state.big.text, big = tea.null}'}
`, host.RunOptions{})
	if res.Status != flow.Done || res.State["size"] != int64(16<<20) {
		t.Fatalf("got %s %v, %v", res.Status, res.State["size"], res.Err)
	}
	if size, _ := s.history(res.RunID); size > 10<<10 {
		t.Errorf("the history has %d bytes", size)
	}
}

func TestWrongAnswersAreRefused(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	res := s.run(t.Context(), `
nodes:
  - {name: ask, uses: human.ask, with: {question: "go?", choices: ["yes", "no"]}, output: got}
`, host.RunOptions{})
	if res.Status != flow.Waiting || len(res.Pending) != 1 {
		t.Fatalf("got %s %v", res.Status, res.Pending)
	}
	before, _ := s.history(res.RunID)
	wf, pending, err := Engine{}.Find(s.flags, h, res.RunID)
	if err != nil || len(pending) != 1 {
		t.Fatal(pending, err)
	}
	t.Cleanup(func() { _ = wf.Close() })
	job := teacmd.Job{Workflow: wf, Options: host.RunOptions{Answers: map[string]any{pending[0].ID: "perhaps"}}}
	_, err = Engine{}.Resume(t.Context(), s.flags, res.RunID, job)
	if refused := (*tea.Error)(nil); !errors.As(err, &refused) || refused.Type != tea.ValidationError {
		t.Errorf("got %v", err)
	}
	if after, _ := s.history(res.RunID); after != before {
		t.Errorf("the history grew from %d to %d bytes", before, after)
	}
	job.Options.Answers[pending[0].ID] = "no"
	res, err = Engine{}.Resume(t.Context(), s.flags, res.RunID, job)
	if err != nil || res.Status != flow.Done {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestFailedRunContinues(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newSite(t, h, nil)
	res := s.run(t.Context(), `
nodes:
  - {name: first, uses: probe.call, with: {value: 1}, output: first}
  - {name: check, run: 'if not state.ok then error("not yet") end'}
  - {name: last, uses: probe.call, with: {value: 2}, output: last}
`, host.RunOptions{})
	var failed *flow.NodeError
	if res.Status != flow.Failed || !errors.As(res.Err, &failed) || failed.Node != "check" || failed.Err.Type != tea.InternalError || !failed.InCode {
		t.Fatalf("got %s, %v", res.Status, res.Err)
	}
	wf, _, err := Engine{}.Find(s.flags, h, res.RunID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wf.Close() })
	res, err = Engine{}.Resume(t.Context(), s.flags, res.RunID, teacmd.Job{Workflow: wf, Options: host.RunOptions{Input: map[string]any{"ok": true}}})
	if err != nil || res.Status != flow.Done {
		t.Fatalf("got %v, %v", res, err)
	}
	if calls := p.take(res.RunID); len(calls) != 2 || !strings.HasPrefix(calls[0], "first ") || !strings.HasPrefix(calls[1], "last ") {
		t.Errorf("the calls were %q", calls)
	}
}

func TestDoneContextCancelsTheRun(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stopped := errors.New("stopped by SIGINT")
	res := s.run(ctx, `
nodes:
  - {name: wait, uses: time.sleep, with: {seconds: 3600}}
`, host.RunOptions{Events: func(e flow.Event) {
		if e.Type == flow.EventNodeStart {
			cancel(stopped)
		}
	}})
	if res.Status != flow.Stopped || !errors.Is(res.Err, stopped) {
		t.Errorf("got %s, %v", res.Status, res.Err)
	}
}

// The server refuses the results of many nodes in one message.
func TestManyMediumResults(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	for name, text := range map[string]string{
		"loop": `
config: {max_steps: 1000}
nodes:
  - name: loop
    type: while_loop
    condition: (state.n or 0) < 150
    max_iterations: 200
    body: [{name: inc, run: 'return {n = (state.n or 0) + 1, text = string.rep("x", 40000)}'}]
  - {name: end, run: "return {text = tea.null}"}
`,
		"map of code": `
nodes:
  - {name: all, type: dynamic_parallel, items: "{{ range(150) | list }}", steps: [{name: one, run: 'return {text = string.rep("x", 40000)}'}], fan_in: end}
  - {name: end, run: "return {n = #parallel_results, text = tea.null}"}
`,
		"map of calls": `
nodes:
  - {name: make, run: 'return {text = string.rep("x", 60000)}'}
  - {name: all, type: dynamic_parallel, items: "{{ range(150) | list }}", max_concurrency: 150, action: {uses: probe.call, with: {value: "{{ state.text }}"}}, fan_in: end}
  - {name: end, run: "return {n = #parallel_results, text = tea.null}"}
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := s.run(t.Context(), text, host.RunOptions{})
			if res.Status != flow.Done || res.State["n"] != int64(150) {
				t.Errorf("got %s %v, %v", res.Status, res.State["n"], res.Err)
			}
			s.replayAll(res.RunID)
		})
	}
}

// An operator sees in Temporal which calls failed, also one that is tried again.
func TestFailedCallsAreFailedActivities(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newSite(t, h, nil)
	res := s.run(t.Context(), `
nodes:
  - {name: call, uses: probe.call, with: {failures: 2, type: rate_limited}, retry: {max_retries: 2, base_delay: 0.01}, output: got}
  - {name: last, uses: probe.call, with: {failures: 1, type: not_found}}
`, host.RunOptions{})
	var failed *flow.NodeError
	if res.Status != flow.Failed || !errors.As(res.Err, &failed) || failed.Err.Type != tea.NotFound || failed.Err.Source != "probe" || failed.Err.Message != "attempt 1 fails" {
		t.Fatalf("got %s, %v", res.Status, res.Err)
	}
	if calls := p.take(res.RunID); len(calls) != 4 {
		t.Errorf("the calls were %q", calls)
	}
	about, err := s.describe(t.Context(), res.RunID, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range s.histories(res.RunID, about.GetWorkflowExecutionInfo().GetFirstRunId())[0].GetEvents() {
		if failed := e.GetActivityTaskFailedEventAttributes().GetFailure(); failed != nil {
			got = append(got, failed.GetApplicationFailureInfo().GetType()+": "+failed.GetMessage())
		}
	}
	if diff := cmp.Diff([]string{"rate_limited: attempt 1 fails", "rate_limited: attempt 2 fails", "not_found: attempt 1 fails"}, got); diff != "" {
		t.Errorf("the failed activities (-want +got):\n%s", diff)
	}
	s.replayAll(res.RunID)
}

// The error of a call is stored like a result.
func TestLargeErrorIsOutsideOfTheHistory(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	res := s.run(t.Context(), "nodes: [{name: call, uses: probe.large, with: {value: error}}]", host.RunOptions{})
	var failed *flow.NodeError
	if !errors.As(res.Err, &failed) || failed.Err.Type != tea.ValidationError || len(failed.Err.Message) != 3_000_000 {
		t.Fatalf("got %s, %.200v", res.Status, res.Err)
	}
	about, err := s.describe(t.Context(), res.RunID, "")
	if err != nil {
		t.Fatal(err)
	}
	history := s.histories(res.RunID, about.GetWorkflowExecutionInfo().GetFirstRunId())[0]
	for _, e := range history.GetEvents() {
		if n := proto.Size(e); n > maxInline {
			t.Errorf("%s has %d bytes", e.GetEventType(), n)
		}
	}
	s.replay(history)
}

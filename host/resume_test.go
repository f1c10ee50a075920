package host_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// counter is an action that counts its calls by name.
type counter struct {
	mu    sync.Mutex
	calls map[string]int
	keys  map[string]string
	// fail makes the next call with that name fail.
	fail map[string]bool
}

func newCounter() *counter {
	return &counter{calls: map[string]int{}, keys: map[string]string{}, fail: map[string]bool{}}
}

func (c *counter) action() tea.Action {
	return tea.Action{Name: "count.hit", Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		v, err := req.Params.Value()
		if err != nil {
			return nil, err
		}
		name, _ := v.(map[string]any)["name"].(string)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fail[name] {
			c.fail[name] = false
			return nil, tea.Errorf(tea.InternalError, "told to fail")
		}
		c.calls[name]++
		c.keys[name] = req.IdempotencyKey
		return tea.Respond(map[string]any{"name": name}), nil
	}}
}

// session loads a workflow with a counter and keeps runs in one directory.
type session struct {
	t   *testing.T
	wf  *host.Workflow
	dir string
	c   *counter
}

func newSession(t *testing.T, text string, more ...tea.Action) *session {
	t.Helper()
	c := newCounter()
	h, err := host.New(host.Options{Actions: append(more, c.action())})
	if err != nil {
		t.Fatal(err)
	}
	wf, err := h.Parse("test.yaml", []byte(text), host.LoadOptions{})
	if err != nil {
		t.Fatalf("load:\n%v", err)
	}
	t.Cleanup(func() { wf.Close(); h.Close() })
	return &session{t: t, wf: wf, dir: t.TempDir(), c: c}
}

func (s *session) run(o host.RunOptions) *flow.Result {
	s.t.Helper()
	o.CheckpointDir = s.dir
	res, err := s.wf.Run(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

func (s *session) resume(id string, o host.RunOptions) *flow.Result {
	s.t.Helper()
	o.CheckpointDir = s.dir
	res, err := s.wf.Resume(s.t.Context(), id, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

func (s *session) wantCalls(want map[string]int) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.c.calls); diff != "" {
		s.t.Errorf("calls: %s", diff)
	}
}

func wantStatus(t *testing.T, res *flow.Result, want flow.Status, pending ...string) {
	t.Helper()
	var ids []string
	for _, i := range res.Pending {
		ids = append(ids, i.ID)
	}
	if res.Status != want || cmp.Diff(pending, ids) != "" {
		t.Fatalf("status = %s %v, want %s %v; err = %v", res.Status, ids, want, pending, res.Err)
	}
}

func TestInterruptAfterRunsNodeOnceAndRoutesOnInput(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, uses: count.hit, with: {name: a}, output: a, interrupt: after}
  - {name: yes, run: "return {went = 'yes'}"}
  - {name: no, run: "return {went = 'no'}"}
edges:
  - {from: a, to: yes, when: state.approved}
  - {from: a, to: no}
  - {from: yes, to: END}
  - {from: no, to: END}
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a:after")
	res = s.resume(res.RunID, host.RunOptions{Input: map[string]any{"approved": true}})
	wantState(t, res, map[string]any{"a": map[string]any{"name": "a"}, "approved": true, "went": "yes"})
	s.wantCalls(map[string]int{"a": 1})
}

func TestInterruptsInBranchesAreAnsweredApart(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, uses: count.hit, with: {name: a}, output: a}
  - {name: b, uses: human.ask, with: {question: "b?"}, output: {ans: "{{ result.answer }}"}}
  - {name: c, uses: human.ask, with: {question: "c?", choices: [1, 2]}, output: {ans: "{{ result.answer }}"}}
  - {name: d, uses: count.hit, with: {name: d}, output: d}
  - name: join
    run: |
      local out = {}
      for i, p in ipairs(parallel_results) do out[i] = p.state.ans or "none" end
      return {out = out}
edges:
  - {from: a, parallel: [b, c, d], fan_in: join}
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a>b/b:ask", "a>c/c:ask")
	for id, answer := range map[string]any{"a>c/c:ask": int64(3), "nobody:ask": true} {
		if _, err := s.wf.Resume(t.Context(), res.RunID, host.RunOptions{CheckpointDir: s.dir, Answers: map[string]any{id: answer}}); err == nil {
			t.Errorf("the answer %v to %s was accepted", answer, id)
		}
	}
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{"a>c/c:ask": int64(2)}})
	wantStatus(t, res, flow.Waiting, "a>b/b:ask")
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{"a>b/b:ask": "B"}})
	wantState(t, res, map[string]any{"a": map[string]any{"name": "a"}, "out": []any{"B", int64(2), "none"}})
	s.wantCalls(map[string]int{"a": 1, "d": 1})
}

func TestFailedRunResumesAtTheFailedNode(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
initial_state: {n: 0}
nodes:
  - name: loop
    type: while_loop
    condition: state.n < 3
    max_iterations: 5
    body:
      - {name: hit, uses: count.hit, with: {name: "h{{ state.n }}"}, output: last}
      - {name: inc, run: "return {n = state.n + 1}"}
  - name: each
    type: dynamic_parallel
    items: [x, y, z]
    steps:
      - {uses: count.hit, with: {name: "{{ item }}1"}, output: s1}
      - {uses: count.hit, with: {name: "{{ item }}2"}, output: s2}
  - {name: end, run: "return {done = state.n}"}
`)
	s.c.fail["h1"], s.c.fail["y2"] = true, true
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Failed)
	var node *flow.NodeError
	if !errors.As(res.Err, &node) || node.Path != "loop[1]/hit" {
		t.Fatalf("err = %v", res.Err)
	}
	res = s.resume(res.RunID, host.RunOptions{})
	if !errors.As(res.Err, &node) || node.Path != "each[1]/1" {
		t.Fatalf("err = %v", res.Err)
	}
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Done)
	s.wantCalls(map[string]int{"h0": 1, "h1": 1, "h2": 1, "x1": 1, "x2": 1, "y1": 1, "y2": 1, "z1": 1, "z2": 1})
	if res.State["done"] != int64(3) {
		t.Errorf("state = %v", res.State)
	}
}

func TestFinishedRunResumesToItsEnd(t *testing.T) {
	t.Parallel()
	s := newSession(t, `nodes: [{name: a, uses: count.hit, with: {name: a}}]`)
	res := s.run(host.RunOptions{})
	res = s.resume(res.RunID, host.RunOptions{})
	wantState(t, res, map[string]any{"name": "a"})
	s.wantCalls(map[string]int{"a": 1})
	o := host.RunOptions{CheckpointDir: s.dir, Input: map[string]any{"name": "b"}}
	if _, err := s.wf.Resume(t.Context(), res.RunID, o); !errors.Is(err, host.ErrInputUnused) {
		t.Errorf("input at the end: %v", err)
	}
	wantState(t, s.resume(res.RunID, host.RunOptions{}), map[string]any{"name": "a"})
}

func TestStopKeepsWhatFinished(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, uses: count.hit, with: {name: a}}
  - {name: b, uses: time.sleep, with: {seconds: 3600}}
`)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("told to stop")
	res, err := s.wf.Run(ctx, host.RunOptions{CheckpointDir: s.dir, Events: func(e flow.Event) {
		if e.Type == "node_start" && e.Node == "b" {
			cancel(stop)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != flow.Stopped || !errors.Is(res.Err, stop) {
		t.Fatalf("status = %s, err = %v", res.Status, res.Err)
	}
}

// The input of a resume belongs where the run stopped, not in every loop and
// branch that begins later: there it would undo what nodes have written since.
func TestResumeInputIsMergedOnce(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, run: "return {n = 1}", interrupt: after}
  - name: loop
    type: while_loop
    condition: state.n < 3
    max_iterations: 5
    body: [{name: inc, run: "return {n = state.n + 1}"}]
  - {name: fan, run: "return {n = 10}"}
  - {name: b, run: "return {b = state.n}"}
  - {name: c, run: "return {c = state.n}"}
edges: [{from: fan, parallel: [b, c]}, {from: b, to: END}, {from: c, to: END}]
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a:after")
	res = s.resume(res.RunID, host.RunOptions{Input: map[string]any{"n": 0}})
	wantState(t, res, map[string]any{"n": int64(10), "b": int64(10), "c": int64(10)})
}

func TestResumeInputReachesTheFailedNodeOfABranchAndTheJoin(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
initial_state: {text: "{"}
nodes:
  - {name: a}
  - {name: b, uses: json.parse, with: {text: "{{ state.text }}"}, output: parsed}
  - {name: c, uses: count.hit, with: {name: c}, output: hit}
edges: [{from: a, parallel: [b, c]}, {from: b, to: END}, {from: c, to: END}]
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Failed)
	res = s.resume(res.RunID, host.RunOptions{Input: map[string]any{"text": "[1]"}})
	wantState(t, res, map[string]any{
		"text": "[1]", "hit": map[string]any{"name": "c"}, "parsed": map[string]any{"success": true, "data": []any{int64(1)}},
	})
	s.wantCalls(map[string]int{"c": 1})
}

// A journal has an output only if it does not follow from the result, and a
// resume restores both kinds. Journals of earlier versions have all of them.
func TestOutputsAreRestored(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: whole, uses: count.hit, with: {name: the-whole}, output: a}
  - {name: part, uses: count.hit, with: {name: the-part}, output: {b: "{{ result.name }}", fixed: 1}}
  - {name: read, uses: count.hit, with: {name: read}, output: {c: "{{ result.name }} {{ state.b }} {{ range(100000) | random }}"}}
  - {name: lua, run: "return {x = 2}", output: {d: "{{ result.x + 1 }}"}}
  - {name: none, uses: count.hit, with: {name: none}, output: {}}
  - {name: last, uses: count.hit, with: {name: last}, output: a}
`)
	s.c.fail["last"] = true
	stopped := s.run(host.RunOptions{})
	wantStatus(t, stopped, flow.Failed)
	data := readFile(t, stopped.Checkpoint)
	for text, want := range map[string]int{"the-whole": 1, "the-part": 2} { // the second one is in the output of read
		if n := strings.Count(string(data), text); n != want {
			t.Errorf("the journal has %s %d times, want %d", text, n, want)
		}
	}
	res := s.resume(stopped.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Done)
	want := maps.Clone(stopped.State)
	want["a"] = map[string]any{"name": "last"}
	wantState(t, res, want)
	if want["d"] != int64(3) || want["b"] != "the-part" || want["fixed"] != int64(1) {
		t.Errorf("state %v", want)
	}
}

// With effects: once the results of calls before a question are used again.
func TestCallsBeforeAQuestionAreMadeOnceWithEffectsOnce(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - name: lua
    effects: once
    run: |
      local hit = tea.action("count.hit", {name = "before"})
      return {name = hit.name, a = tea.action("human.ask", {question = "well?"}).answer}
`)
	res := s.run(host.RunOptions{})
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{res.Pending[0].ID: "A"}})
	wantState(t, res, map[string]any{"name": "before", "a": "A"})
	s.wantCalls(map[string]int{"before": 1})
}

// The guide says which calls a resume repeats, and the ids of questions in Lua.
func TestCallsOfAnUnfinishedLuaNodeAreRepeatedWithTheirKeys(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
budget: {tool_calls: 6}
nodes:
  - name: lua
    run: |
      tea.action("count.hit", {name = "before"})
      local a = tea.action("human.ask", {question = "well?"}).answer
      local b = tea.action("human.ask", {question = "well?"}).answer
      return {a = a, b = b}
  - name: steps
    steps:
      - {uses: count.hit, with: {name: step}, output: step}
      - {uses: human.ask, with: {question: "well?"}, output: {c: "{{ result.answer }}"}}
`)
	res := s.run(host.RunOptions{})
	key := s.c.keys["before"]
	id := res.Pending[0].ID
	if hash, ok := strings.CutPrefix(id, "lua!human.ask:"); !ok || len(hash) != len("01234567:ask") {
		t.Errorf("id = %s, want lua!human.ask:HASH:ask", id)
	}
	second := strings.TrimSuffix(id, ":ask") + "#2:ask"
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{id: "A"}})
	wantStatus(t, res, flow.Waiting, second)
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{second: "B"}})
	wantStatus(t, res, flow.Waiting, "steps/1:ask")
	s.wantCalls(map[string]int{"before": 3, "step": 1})
	if s.c.keys["before"] != key {
		t.Errorf("the key of the repeated call is %s, want %s", s.c.keys["before"], key)
	}
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{"steps/1:ask": "C"}})
	wantState(t, res, map[string]any{"a": "A", "b": "B", "c": "C", "step": map[string]any{"name": "step"}})
	s.wantCalls(map[string]int{"before": 3, "step": 1})
}

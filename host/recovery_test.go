package host_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestNestedInterruptIsRestored(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{"sub.yaml": `
nodes:
  - name: each
    type: dynamic_parallel
    items: "{{ state.list }}"
    steps:
      - {uses: count.hit, with: {name: "{{ item }}"}, output: hit}
      - {name: ok, uses: human.ask, with: {question: "{{ item }}?"}, output: "ok"}
      - {uses: count.hit, with: {name: "{{ item }}2"}, output: hit}
    fan_in: join
  - {name: join, run: "return {n = #parallel_results}"}
`, "main.yaml": `
nodes:
  - {name: a}
  - {name: b, subgraph: sub.yaml, input: {list: [x, y]}, output: "b"}
  - {name: c, uses: count.hit, with: {name: c}, output: c}
  - {name: join, run: "return {n = parallel_results[1].state.b.n}"}
edges: [{from: a, parallel: [b, c], fan_in: join}]
`})
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a>b/b/each[0]/ok:ask", "a>b/b/each[1]/ok:ask")
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{"a>b/b/each[1]/ok:ask": true}})
	wantStatus(t, res, flow.Waiting, "a>b/b/each[0]/ok:ask")
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{"a>b/b/each[0]/ok:ask": true}})
	wantState(t, res, map[string]any{"n": int64(2)})
	s.wantCalls(map[string]int{"x": 1, "y": 1, "x2": 1, "y2": 1, "c": 1})
}

// Nothing has shown an interrupt next to a failure: the run did not wait.
func TestFailureDoesNotPassTheInterruptBesideIt(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a}
  - {name: b, interrupt: before, uses: count.hit, with: {name: b}}
  - {name: c, uses: count.hit, with: {name: c}}
edges: [{from: a, parallel: [b, c]}, {from: b, to: END}, {from: c, to: END}]
`)
	s.c.fail["c"] = true
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Failed)
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a>b/b:before")
	wantStatus(t, s.resume(res.RunID, host.RunOptions{}), flow.Done)
	s.wantCalls(map[string]int{"b": 1, "c": 1})
}

func TestBranchThatTimedOutWaitsForNobody(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, parallel: {timeout_seconds: 0.02}}
  - {name: b}
  - {name: b1, uses: human.ask, with: {question: "b?"}}
  - {name: b2, uses: time.sleep, with: {seconds: 3600}}
  - {name: bj}
  - {name: c}
  - {name: join, interrupt: before, run: "return {timeout = parallel_results[1].timeout}"}
edges:
  - {from: a, parallel: [b, c], fan_in: join}
  - {from: b, parallel: [b1, b2], fan_in: bj}
  - {from: bj, to: join}
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "join:before")
	res = s.resume(res.RunID, host.RunOptions{})
	wantState(t, res, map[string]any{"timeout": true})
}

func TestInputsAreMergedInTheOrderTheyWereGiven(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, interrupt: before, uses: count.hit, with: {name: a}, output: hit}
  - {name: b, run: "return {seen = state.k}"}
`)
	s.c.fail["a"] = true
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a:before")
	res = s.resume(res.RunID, host.RunOptions{Input: map[string]any{"k": 1}, Answers: map[string]any{"a:before": map[string]any{"k": int64(2)}}})
	wantStatus(t, res, flow.Failed)
	res = s.resume(res.RunID, host.RunOptions{})
	if res.State["seen"] != int64(2) {
		t.Errorf("state = %v, want k as it was given last", res.State)
	}
}

func TestFinishedBranchesAreNotReportedAgain(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a}
  - {name: b}
  - {name: c, interrupt: before}
  - {name: join}
  - {name: d, interrupt: before}
edges: [{from: a, parallel: [b, c], fan_in: join}, {from: join, to: d}]
`)
	var mu sync.Mutex
	told := []string{}
	o := host.RunOptions{
		Events: func(e flow.Event) {
			if strings.HasPrefix(string(e.Type), "branch_") {
				told = append(told, string(e.Type)+" "+e.Path)
			}
		},
		Callbacks: flow.Callbacks{BranchEnd: func(path string, _ flow.BranchOutcome) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, "callback "+path)
		}},
	}
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a>c/c:before")
	res = s.resume(res.RunID, o)
	wantStatus(t, res, flow.Waiting, "d:before")
	if diff := cmp.Diff([]string{"branch_start a>c", "branch_end a>c", "callback a>c"}, told); diff != "" {
		t.Error(diff)
	}
	told = []string{}
	wantStatus(t, s.resume(res.RunID, o), flow.Done)
	if diff := cmp.Diff([]string{}, told); diff != "" {
		t.Error(diff)
	}
}

func TestCircuitBreakerStaysOpenOverAResume(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
initial_state: {round: 0}
nodes:
  - {name: a, run: "return {round = state.round + 1}"}
  - {name: bad, uses: json.parse, with: {text: "{"}}
  - {name: ok}
  - name: join
    interrupt: after
    run: "return {kind = parallel_results[1].error_type, circuit = parallel_results[2].circuit_state}"
    goto: [{if: "state.round < 3", to: a}, {to: __end__}]
edges: [{from: a, parallel: [bad, ok], fan_in: join}]
config: {parallel: {circuit_breaker: {failure_threshold: 2, reset_timeout: 3600}}}
`)
	res := s.run(host.RunOptions{})
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "join#2:after")
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "join#3:after")
	if res.State["kind"] != "circuit_open" || res.State["circuit"] != "closed" {
		t.Errorf("state = %v", res.State)
	}
}

func TestKeysStayTheSameWhenAMapIsTriedAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	keys := map[string]int{}
	tries := 0
	flaky := tea.Action{Name: "test.flaky", Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		keys[req.IdempotencyKey]++
		if tries++; tries < 3 || tries == 4 {
			return nil, tea.Errorf(tea.ConnectionError, "not yet")
		}
		return tea.Respond(nil), nil
	}}
	res := run(t, `
nodes:
  - name: outer
    retry: {max_retries: 3, backoff_base_ms: 1}
    steps:
      - name: each
        retry: {max_retries: 0}
        type: dynamic_parallel
        items: [1]
        steps: [{uses: test.flaky, retry: {max_retries: 0}}]
  - name: each
    retry: {max_retries: 1, backoff_base_ms: 1}
    type: while_loop
    max_iterations: 1
    condition: "not state.x"
    body: [{name: y, uses: test.flaky, retry: {max_retries: 0}}, {name: x, run: "return {x = true}"}]
`, host.RunOptions{}, flaky)
	if res.Status != flow.Done || len(keys) != 2 {
		t.Errorf("status = %s, err = %v, keys = %v, want two", res.Status, res.Err, keys)
	}
}

func TestMapThatCannotBeMergedLeavesTheState(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
state_schema: {sum: {type: any, reducer: add}}
nodes:
  - name: each
    type: dynamic_parallel
    items: [1, x]
    on_error: continue
    steps: [{run: "return {sum = item}"}]
  - {name: stop, interrupt: before}
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "stop:before")
	if _, there := res.State["sum"]; there {
		t.Errorf("state = %v, want nothing of the map", res.State)
	}
	again := s.resume(res.RunID, host.RunOptions{})
	if diff := cmp.Diff(res.State, again.State); diff != "" {
		t.Errorf("after the resume: %s", diff)
	}
}

func TestAnswerThatDoesNotFitNamesTheNode(t *testing.T) {
	t.Parallel()
	s := newSession(t, "state_schema: {n: int}\nnodes: [{name: a, interrupt: before}]")
	res := s.run(host.RunOptions{Ask: func(context.Context, flow.Interrupt) (any, error) { return map[string]any{"n": "x"}, nil }})
	if res.Status != flow.Failed || !strings.Contains(res.Err.Error(), `node "a" failed`) {
		t.Fatalf("status = %s, err = %v", res.Status, res.Err)
	}
}

func TestMapOverNothing(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: each, type: dynamic_parallel, items: [], action: {uses: count.hit, with: {name: a}}, fan_in: join}
  - {name: join, interrupt: before, run: "return {n = #parallel_results}"}
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "join:before")
	wantState(t, s.resume(res.RunID, host.RunOptions{}), map[string]any{"n": int64(0)})
}

func TestFanInInsideALoopIsRestored(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
initial_state: {n: 0}
nodes:
  - name: loop
    type: while_loop
    condition: state.n < 9
    max_iterations: 2
    on_max: stop
    body:
      - {name: a, type: dynamic_parallel, items: [1, 2], action: {uses: count.hit, with: {name: "{{ state.n }}{{ item }}"}, output: hit}, fan_in: join}
      - {name: join, interrupt: before, run: "return {n = state.n + #parallel_results}"}
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "loop[0]/join:before")
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "loop[1]/join:before")
	res = s.resume(res.RunID, host.RunOptions{})
	wantState(t, res, map[string]any{"n": int64(4)})
	s.wantCalls(map[string]int{"01": 1, "02": 1, "21": 1, "22": 1})
}

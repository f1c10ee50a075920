package host_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

func TestNestedFanOutsOfALoopAreRestored(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
initial_state: {n: 0}
nodes:
  - {name: a}
  - {name: b}
  - {name: b1, uses: count.hit, with: {name: "b1-{{ state.n }}"}, output: hit}
  - {name: b2, interrupt: before, uses: count.hit, with: {name: "b2-{{ state.n }}"}, output: hit}
  - {name: bj, run: "return {inner = #parallel_results}"}
  - {name: c, uses: count.hit, with: {name: "c-{{ state.n }}"}, output: hit}
  - name: join
    run: "return {n = state.n + 1, inner = parallel_results[1].state.inner, b = state.b2 ~= nil}"
    goto: [{if: "state.n < 2", to: a}, {to: __end__}]
edges:
  - {from: a, parallel: [b, c], fan_in: join}
  - {from: b, parallel: [b1, b2], fan_in: bj}
  - {from: bj, to: join}
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a>b/b>b2/b2:before")
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a#2>b/b>b2/b2:before")
	res = s.resume(res.RunID, host.RunOptions{})
	wantState(t, res, map[string]any{"n": int64(2), "inner": int64(2), "b": true})
	s.wantCalls(map[string]int{"b1-0": 1, "b2-0": 1, "c-0": 1, "b1-1": 1, "b2-1": 1, "c-1": 1})
}

func TestFallbackChainIsResumedAtItsEnd(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a}
  - {name: join, uses: json.parse, with: {text: "{"}, fallback: f1}
  - {name: b, goto: join}
  - {name: c, goto: join}
  - {name: f1, uses: json.parse, with: {text: "["}, fallback: f2}
  - {name: f2, interrupt: before, run: "return {n = #parallel_results}"}
edges: [{from: a, parallel: [b, c], fan_in: join}]
`)
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "f2:before")
	wantState(t, s.resume(res.RunID, host.RunOptions{}), map[string]any{"n": int64(2)})
}

// A branch that has not begun when another one ends the run does not begin.
func TestFailFastBeginsNoFurtherBranch(t *testing.T) {
	t.Parallel()
	var told []string
	res := run(t, `
nodes:
  - {name: a, parallel: {fail_fast: true, max_concurrency: 1}}
  - {name: bad, uses: json.parse, with: {text: "{"}}
  - {name: late}
  - {name: join}
edges: [{from: a, parallel: [bad, late], fan_in: join}]
`, host.RunOptions{Events: func(e flow.Event) {
		if strings.HasPrefix(string(e.Type), "branch_") {
			told = append(told, string(e.Type)+" "+e.Path)
		}
	}})
	if diff := cmp.Diff([]string{"branch_start a>bad", "branch_end a>bad"}, told); diff != "" || res.Status != flow.Failed {
		t.Errorf("status = %s, events: %s", res.Status, diff)
	}
}

func TestPoliciesTogether(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
error_policy: {max_retries: 1, backoff_base_ms: 1, on_failure: continue}
nodes:
  - {name: a, parallel: {retry: {max_retries: 1, base_delay: 0.001}}}
  - {name: b, uses: http.get, with: {url: "http://127.0.0.1:1/"}, on_error: stop}
  - {name: c, uses: json.parse, with: {text: "{"}}
  - {name: join, interrupt: before, run: "return {b = parallel_results[1].error_type, tries = parallel_results[1].retry_count, c = parallel_results[2].success}"}
edges: [{from: a, parallel: [b, c], fan_in: join}]
`)
	retries := []string{}
	res := s.run(host.RunOptions{Events: func(e flow.Event) {
		if e.Type == flow.EventRetry {
			retries = append(retries, e.Path)
		}
	}})
	wantStatus(t, res, flow.Waiting, "join:before")
	if diff := cmp.Diff([]string{"a>b/b", "a>b", "a>b~2/b"}, retries); diff != "" {
		t.Error(diff)
	}
	res = s.resume(res.RunID, host.RunOptions{})
	wantState(t, res, map[string]any{"b": "connection_error", "tries": int64(3), "c": true})
}

func TestItemTriedAgainIsResumedInItsLastAttempt(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - name: a
    retry: {max_retries: 1, backoff_base_ms: 1, retry_on: [internal_error]}
    type: dynamic_parallel
    items: [x, "yy"]
    steps: [{uses: count.hit, with: {name: "{{ item }}1"}, output: p, retry: {max_retries: 0}}, {name: ask, uses: human.ask, with: {question: "{{ item }}"}, output: q}]
`)
	s.c.fail["x1"] = true
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "a[0]~2/ask:ask", "a[1]/ask:ask")
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{"a[0]~2/ask:ask": 1}})
	wantStatus(t, res, flow.Waiting, "a[1]/ask:ask")
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{"a[1]/ask:ask": 1}})
	wantStatus(t, res, flow.Done)
	s.wantCalls(map[string]int{"x1": 1, "yy1": 1})
}

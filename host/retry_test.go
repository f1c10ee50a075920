package host_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

const collect = `
  - name: j
    run: |
      local out = {}
      for i, r in ipairs(parallel_results) do out[i] = r.branch .. " " .. tostring(r.success) .. " " .. (r.state.last and r.state.last.name or "-") end
      return {out = out}
  - {name: after, uses: count.hit, with: {name: after}, output: after}
`

func wantOut(t *testing.T, res *flow.Result, want ...any) {
	t.Helper()
	if diff := cmp.Diff(want, res.State["out"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRetryFailedRunsWhatFailedAndWhatFollows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		fail       []string
		before     []any
		after      []any
		calls      map[string]int
	}{
		{
			"map", `
nodes:
  - {name: first, uses: count.hit, with: {name: first}}
  - name: each
    type: dynamic_parallel
    items: [0, 1, 2, 3]
    steps: [{uses: count.hit, with: {name: "a{{ item }}"}}, {uses: count.hit, with: {name: "b{{ item }}"}, output: last}]
    fan_in: j` + collect,
			[]string{"b1", "a3"},
			[]any{"each[0] true b0", "each[1] false -", "each[2] true b2", "each[3] false -"},
			[]any{"each[0] true b0", "each[1] true b1", "each[2] true b2", "each[3] true b3"},
			map[string]int{"first": 1, "a0": 1, "b0": 1, "a1": 1, "b1": 1, "a2": 1, "b2": 1, "a3": 1, "b3": 1, "after": 2},
		},
		{
			"fan-out", `
nodes:
  - {name: first, uses: count.hit, with: {name: first}}
  - {name: x, uses: count.hit, with: {name: x}, output: last}
  - {name: y, uses: count.hit, with: {name: y}}
  - {name: z, uses: count.hit, with: {name: z}, output: last, goto: j}` + collect + `
edges: [{from: first, parallel: [x, y], fan_in: j}, {from: y, to: z}]`,
			[]string{"z"},
			[]any{"x true x", "y false -"},
			[]any{"x true x", "y true z"},
			map[string]int{"first": 1, "x": 1, "y": 1, "z": 1, "after": 2},
		},
		{
			"nested", `
nodes:
  - name: outer
    type: dynamic_parallel
    items: [0, 1]
    steps:
      - name: inner
        type: dynamic_parallel
        items: ["{{ item }}0", "{{ item }}1"]
        action: {uses: count.hit, with: {name: "n{{ item }}"}, output: last}
      - {uses: count.hit, with: {name: "end{{ item }}"}, output: last}
    fan_in: j` + collect,
			[]string{"n11"},
			[]any{"outer[0] true end0", "outer[1] false -"},
			[]any{"outer[0] true end0", "outer[1] true end1"},
			map[string]int{"n00": 1, "n01": 1, "n10": 1, "n11": 1, "end0": 1, "end1": 1, "after": 2},
		},
		{
			"in a loop", `
initial_state: {n: 0, out: []}
state_schema: {out: {type: list, reducer: extend}}
nodes:
  - name: loop
    type: while_loop
    condition: state.n < 3
    max_iterations: 5
    body:
      - {name: inc, run: "return {n = state.n + 1}"}
      - {name: m, type: dynamic_parallel, items: [0, 1], action: {uses: count.hit, with: {name: "x{{ state.n }}{{ item }}"}}, fan_in: k}
      - {name: k, run: "local s = '' for _, r in ipairs(parallel_results) do s = s .. tostring(r.success) .. ' ' end return {out = {s}}"}
  - {name: after, uses: count.hit, with: {name: after}, output: after}
`,
			[]string{"x21"},
			[]any{"true true ", "true false ", "true true "},
			[]any{"true true ", "true true ", "true true "},
			map[string]int{"x10": 1, "x11": 1, "x20": 1, "x21": 1, "x30": 2, "x31": 2, "after": 2},
		},
		{
			"map in the items of a map", `
nodes:
  - {name: each, type: dynamic_parallel, items: [0, 1], steps: [{name: s, type: dynamic_parallel, items: [5, 6], item_var: part, steps: [{uses: count.hit, with: {name: "{{ item }}{{ part }}"}, output: last}]}, {run: "return {last = {name = 'e'}}"}], fan_in: j}` + collect,
			[]string{"06"},
			[]any{"each[0] false -", "each[1] true e"},
			[]any{"each[0] true e", "each[1] true e"},
			map[string]int{"05": 1, "06": 1, "15": 1, "16": 1, "after": 2},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, test.text)
			for _, name := range test.fail {
				s.c.fail[name] = true
			}
			res := s.run(host.RunOptions{})
			wantStatus(t, res, flow.Done)
			wantOut(t, res, test.before...)
			// A plain resume changes nothing.
			again := s.resume(res.RunID, host.RunOptions{})
			wantOut(t, again, test.before...)
			if again.FailedBranches != len(test.fail) {
				t.Errorf("%d failed branches after a plain resume, want %d", again.FailedBranches, len(test.fail))
			}
			res = s.resume(res.RunID, host.RunOptions{RetryFailed: true})
			wantStatus(t, res, flow.Done)
			wantOut(t, res, test.after...)
			if res.FailedBranches != 0 {
				t.Errorf("%d failed branches: %v", res.FailedBranches, res.Failures)
			}
			s.wantCalls(test.calls)
			// It is done now, for later resumes too.
			res = s.resume(res.RunID, host.RunOptions{})
			wantStatus(t, res, flow.Done)
			wantOut(t, res, test.after...)
			s.wantCalls(test.calls)
			if _, err := s.wf.Resume(t.Context(), res.RunID, host.RunOptions{CheckpointDir: s.dir, RetryFailed: true}); !errors.Is(err, host.ErrNothingFailed) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// A fork at each record is a run that was killed there: it ends as the run
// itself did, and no branch that had succeeded runs again.
func TestKilledRetryContinues(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: each, type: dynamic_parallel, items: [0, 1, 2], action: {uses: count.hit, with: {name: "a{{ item }}"}, output: last}, fan_in: j}`+collect)
	s.c.fail["a1"] = true
	res := s.run(host.RunOptions{})
	records := s.records(res.RunID)
	res = s.resume(res.RunID, host.RunOptions{RetryFailed: true})
	want := []any{"each[0] true a0", "each[1] true a1", "each[2] true a2"}
	wantOut(t, res, want...)
	all := s.records(res.RunID)
	if all <= records+1 {
		t.Fatalf("%d records, %d before the retry", all, records)
	}
	for at := records + 1; at <= all; at++ {
		before := s.c.calls["a0"] + s.c.calls["a2"]
		fork, err := s.wf.Fork(t.Context(), res.RunID, uint64(at), host.RunOptions{CheckpointDir: s.dir})
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		wantStatus(t, fork, flow.Done)
		if got := s.c.calls["a0"] + s.c.calls["a2"]; got != before {
			t.Errorf("at %d: branches that had succeeded ran again", at)
		}
		if out, _ := fork.State["out"].([]any); len(out) != 3 || out[0] != want[0] || out[2] != want[2] || fork.FailedBranches != 0 {
			t.Errorf("at %d: out = %v, %d failed branches", at, out, fork.FailedBranches)
		}
	}
}

// What was approved for other results is asked again.
func TestRetryAsksAgain(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: each, type: dynamic_parallel, items: [0, 1], action: {uses: count.hit, with: {name: "a{{ item }}"}, output: last}, fan_in: j}`+collect+`
config: {interrupt_before: [after]}
`)
	s.c.fail["a1"] = true
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "after:before")
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Done)
	res = s.resume(res.RunID, host.RunOptions{RetryFailed: true})
	wantStatus(t, res, flow.Waiting, "after:before")
	runs, err := checkpoints.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	contents, err := runs.Show(res.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if pending, err := checkpoints.Pending(contents); err != nil || len(pending) != 1 {
		t.Errorf("pending = %v, %v", pending, err)
	}
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Done)
	s.wantCalls(map[string]int{"a0": 1, "a1": 1, "after": 2})
}

// records counts the records of a run.
func (s *session) records(id string) int {
	s.t.Helper()
	runs, err := checkpoints.Open(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	contents, err := runs.Show(id)
	if err != nil {
		s.t.Fatal(err)
	}
	return len(contents.Records)
}

package host_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
)

// Every record of a resume with input is a place where it may be killed. From
// each of them the run must end in the same way, without the input being given
// again and without it being merged twice.
func TestInputOfAKilledResumeIsKept(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{"sub.yaml": `
nodes:
  - {name: s1, run: "return {n = (state.n or 0) + 1}"}
  - {name: s2, run: "return {n = state.n + 1}"}
`, "main.yaml": `
initial_state: {n: 0}
nodes:
  - {name: a}
  - {name: b, run: "return {b = 1}"}
  - {name: b2, interrupt: before, run: "return {n = state.n + 1}"}
  - {name: b3, run: "return {n = state.n + 1}"}
  - {name: c, run: "return {c = 1}"}
  - name: c2
    interrupt: before
    type: while_loop
    condition: state.n < 13
    max_iterations: 5
    body: [{name: step, run: "return {n = state.n + 1}"}]
  - {name: c3, subgraph: sub.yaml, input: {n: "{{ state.n }}"}, output: sub}
  - name: each
    type: dynamic_parallel
    items: [1, 2]
    steps: [{run: "return {n = state.n + item}"}, {run: "return {n = state.n + item}"}]
    fan_in: join
  - {name: join, run: "return {items = {parallel_results[1].state.n, parallel_results[2].state.n}}"}
  - name: end
    run: |
      return {out = {parallel_results[1].state.n, parallel_results[2].state.n, parallel_results[2].state.sub.n}, items = parallel_results[2].state.items}
edges:
  - {from: a, parallel: [b, c], fan_in: end}
  - {from: b, to: b2}
  - {from: b2, to: b3}
  - {from: c, to: c2}
  - {from: c2, to: c3}
  - {from: c3, to: each}
  - {from: join, to: end}
`})
	given := map[string]any{"n": int64(10)}
	first := s.run(host.RunOptions{})
	wantStatus(t, first, flow.Waiting, "a>b/b2:before", "a>c/c2:before")
	runs, err := checkpoints.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := s.resume(first.RunID, host.RunOptions{Input: given})
	wantState(t, whole, map[string]any{
		"n": int64(10), "items": []any{int64(15), int64(17)}, "out": []any{int64(12), int64(13), int64(15)},
	})
	contents, err := runs.Show(first.RunID)
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	for i, rec := range contents.Records {
		if rec.Kind == "given" {
			begun = i + 1
		}
	}
	if begun == 0 {
		t.Fatal("the input of the resume is not recorded")
	}
	store, err := checkpoint.OpenStore(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for at := begun; at < len(contents.Records); at++ {
		rec := contents.Records[at-1]
		for name, input := range map[string]map[string]any{"once": nil, "again": given} {
			id := fmt.Sprint("killed-", at, "-", name)
			journal, _, err := store.Fork(contents, uint64(at), id, flow.DurabilitySync)
			if err != nil {
				t.Fatal(err)
			}
			if err := journal.Close(); err != nil {
				t.Fatal(err)
			}
			res := s.resume(id, host.RunOptions{Input: input})
			if diff := cmp.Diff(whole.State, res.State); diff != "" {
				t.Errorf("killed after record %d (%s %s), input given %s (-want +got):\n%s", at, rec.Kind, rec.Path, name, diff)
			}
		}
	}
}

// A fork comes into being with its input.
func TestForkHoldsItsInput(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, run: "return {v = 1}"}
  - {name: b, interrupt: before, run: "return {w = state.v}"}
`)
	first := s.run(host.RunOptions{})
	res, err := s.wf.Fork(t.Context(), first.RunID, 2, host.RunOptions{CheckpointDir: s.dir, Input: map[string]any{"v": int64(7)}})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, res, flow.Waiting, "b:before")
	runs, err := checkpoints.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	contents, err := runs.Show(res.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if got := contents.Records[2]; got.Kind != "given" || string(got.Body) != `{"values":{"v":7}}` {
		t.Errorf("behind the copied records: %s %s, want the input", got.Kind, got.Body)
	}
	wantState(t, s.resume(res.RunID, host.RunOptions{}), map[string]any{"v": int64(7), "w": int64(7)})
	if _, err := s.wf.Fork(t.Context(), first.RunID, 99, host.RunOptions{CheckpointDir: s.dir}); err == nil {
		t.Error("a fork behind the last record: no error")
	}
	list, err := runs.List()
	if err != nil || len(list) != 2 {
		t.Errorf("runs: %+v, %v, want the two", list, err)
	}
}

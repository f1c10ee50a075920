package host_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

func TestStepsAreCountedOnceInEveryOrderOfResumes(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{
		"sub.yaml": `
nodes:
  - {name: p}
  - {name: q, uses: human.ask, with: {question: sub}}
  - {name: r}
`,
		"main.yaml": `
nodes:
  - {name: start}
  - {name: a, uses: human.ask, with: {question: a}, output: a}
  - {name: a2, goto: join}
  - {name: b, steps: [{run: "return {b = 1}"}, {uses: human.ask, with: {question: b}}, {run: "return {b = 2}"}], goto: join}
  - name: c
    type: while_loop
    condition: (state.c or 0) < 2
    max_iterations: 3
    body:
      - {name: ask, uses: human.ask, with: {question: c}, output: d}
      - {name: count, run: "return {c = (state.c or 0) + 1}"}
  - {name: c2, uses: json.parse, with: {text: "{"}, fallback: c3}
  - {name: c3, goto: join}
  - {name: m, type: dynamic_parallel, items: [1, 2], subgraph: sub.yaml}
  - {name: m2, uses: workflow.run, with: {path: sub.yaml}, goto: join}
  - {name: e, run: "return {e = tea.action('human.ask', {question = 'lua'}).answer}", goto: join}
  - {name: join, run: "return {n = #parallel_results}"}
  - {name: last, interrupt: after}
edges: [{from: start, parallel: [a, b, c, m, e], fan_in: join}]
`,
	})
	want := -1
	// stopping returns options with which a run is stopped at one of its next
	// events.
	stopping := func(random *rand.Rand, o host.RunOptions) (context.Context, host.RunOptions) {
		ctx, stop := context.WithCancel(t.Context())
		t.Cleanup(stop)
		left := random.IntN(40)
		o.Events = func(flow.Event) {
			if left--; left == 0 {
				stop()
			}
		}
		return ctx, o
	}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		res, err := s.wf.Run(stopping(random, host.RunOptions{CheckpointDir: s.dir}))
		if err != nil {
			t.Fatal(err)
		}
		for resumes := 0; res.Status == flow.Waiting || res.Status == flow.Stopped; resumes++ {
			answers := map[string]any{}
			for _, i := range random.Perm(len(res.Pending))[:random.IntN(len(res.Pending)+1)] {
				answers[res.Pending[i].ID] = "yes"
			}
			ctx, o := stopping(random, host.RunOptions{CheckpointDir: s.dir, Answers: answers})
			if res, err = s.wf.Resume(ctx, res.RunID, o); err != nil {
				t.Fatal(err)
			}
			if resumes > 50 {
				t.Fatal("the run does not end")
			}
		}
		if want < 0 {
			want = res.Usage.Steps
		}
		if res.Status != flow.Done || res.Usage.Steps != want {
			t.Errorf("order %d: %s (%v) after %d steps, want %d", seed, res.Status, res.Err, res.Usage.Steps, want)
		}
	}
}

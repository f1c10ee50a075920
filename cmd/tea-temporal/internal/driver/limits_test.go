package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// withoutBlobs returns the site with a queue and a worker without a store.
func (s *site) withoutBlobs() *site {
	s.t.Helper()
	f := s.flags
	f.Blobs, f.Queue = "", f.Queue+"-without"
	c, err := dial(s.t.Context(), f.TemporalFlags, discard)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.close)
	k := newWorker(c, s.worker.workflows.host, nil)
	s.t.Cleanup(k.workflows.close)
	bare := &site{t: s.t, flags: f, connection: c, worker: k}
	bare.start(k)
	return bare
}

// refusedForSize reports whether an error is about values that Temporal does not
// store, with the remedy.
func refusedForSize(err error) bool {
	var e *tea.Error
	return errors.As(err, &e) && e.Type == tea.ResourceExhausted && strings.Contains(e.Message, "--blobs")
}

func TestLargeValuesWithoutBlobsFail(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil).withoutBlobs()
	for name, node := range map[string]string{
		"code":        `{name: make, run: 'return {big = string.rep("x", 3000000)}'}`,
		"result":      `{name: make, uses: probe.call, with: {value: "{{ 'x' * 3000000 }}"}, output: big}`,
		"message":     `{name: make, uses: probe.call, with: {value: "{{ 'x' * 5000000 }}"}, output: big}`, // larger than a request to the server
		"state":       "{name: a, run: 'return {a = string.rep(\"x\", 1500000)}'}\n  - {name: b, run: 'return {b = string.rep(\"x\", 1500000)}'}",
		"parameters":  `{name: make, run: 'return {n = #tea.action("probe.call", {value = string.rep("x", 3000000)})}'}`,
		"inner call":  `{name: make, uses: probe.large, with: {value: inner}, output: big}`,
		"inner calls": "name: all\n    type: dynamic_parallel\n    items: \"{{ range(6) | list }}\"\n    action: {uses: probe.large, with: {value: inner}}\n    fan_in: end\n  - {name: end, run: \"return {}\"}",
		"log":         `{name: make, uses: trace.log, with: {message: "{{ 'x' * 3000000 }}"}}`,
		"question":    `{name: make, uses: human.ask, with: {question: "{{ 'x' * 3000000 }}"}, output: got}`,
		"log records": `{name: make, uses: probe.large, with: {value: log}, output: big}`,
		"note":        `{name: make, uses: probe.large, with: {value: note}, output: big}`,
		"tokens":      `{name: make, uses: probe.large, with: {value: tokens}, output: big}`,
		"error":       `{name: make, uses: probe.large, with: {value: error}, output: big}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := Engine{}.Run(t.Context(), s.flags, teacmd.Job{Workflow: s.load("nodes:\n  - " + node + "\n"), Options: host.RunOptions{RunID: host.NewRunID()}})
			if err != nil || res.Status != flow.Failed || !refusedForSize(res.Err) {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
}

// A run that cannot be stored does not start, and an answer is refused before the
// run gets it.
func TestLargeStartsWithoutBlobsAreRefused(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil).withoutBlobs()
	const ask = "nodes:\n  - {name: ask, uses: human.ask, with: {question: 'go?'}, output: got}\n"
	comment := "\n#" + strings.Repeat("x", 3_000_000) + "\n"
	load := func(text, overlay string) *host.Workflow {
		o := host.LoadOptions{}
		if overlay != "" {
			o.Overlays = []string{write(t, "overlay.yaml", overlay)}
		}
		wf, err := h.Load(write(t, "flow.yaml", text), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = wf.Close() })
		return wf
	}
	many := map[string]any{}
	for i := range 60 {
		many[fmt.Sprint("v", i)] = strings.Repeat("x", 50_000)
	}
	for name, job := range map[string]teacmd.Job{
		"input":       {Workflow: load(ask, ""), Options: host.RunOptions{Input: map[string]any{"v": strings.Repeat("x", 3_000_000)}}},
		"above 4 MB":  {Workflow: load(ask, ""), Options: host.RunOptions{Input: map[string]any{"v": strings.Repeat("x", 5_000_000)}}},
		"many inputs": {Workflow: load(ask, ""), Options: host.RunOptions{Input: many}},
		"file":        {Workflow: load(ask+comment, "")},
		"overlay":     {Workflow: load(ask, "config: {max_steps: 9}"+comment)},
		"together":    {Workflow: load(ask+comment[:1_500_000]+"\n", ""), Options: host.RunOptions{Input: map[string]any{"v": strings.Repeat("x", 1_500_000)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if res, err := (Engine{}).Run(t.Context(), s.flags, job); !refusedForSize(err) {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
	t.Run("schedule", func(t *testing.T) {
		t.Parallel()
		job := teacmd.Job{Workflow: load(ask, ""), Options: host.RunOptions{Input: many}}
		err := Engine{}.Schedule(t.Context(), s.flags, t.Name(), []string{"0 6 * * *"}, job)
		if e := (*tea.Error)(nil); !errors.As(err, &e) || e.Type != tea.ResourceExhausted {
			t.Errorf("got %v", err)
		}
	})
	res := s.run(t.Context(), ask, host.RunOptions{})
	if res.Status != flow.Waiting {
		t.Fatalf("got %v", res)
	}
	for name, o := range map[string]host.RunOptions{
		"answer":            {Answers: map[string]any{res.Pending[0].ID: strings.Repeat("x", 3_000_000)}},
		"answer above 4 MB": {Answers: map[string]any{res.Pending[0].ID: strings.Repeat("x", 5_000_000)}},
		"input of a resume": {Input: many, Answers: map[string]any{res.Pending[0].ID: "yes"}},
	} {
		if got, err := (Engine{}).Resume(t.Context(), s.flags, res.RunID, teacmd.Job{Workflow: load(ask, ""), Options: o}); !refusedForSize(err) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	got, err := Engine{}.Resume(t.Context(), s.flags, res.RunID, teacmd.Job{Workflow: load(ask, ""), Options: host.RunOptions{Answers: map[string]any{res.Pending[0].ID: "yes"}}})
	if err != nil || got.Status != flow.Done {
		t.Errorf("the run does not continue: %v, %v", got, err)
	}
}

// The server ends a run whose next execution would begin with too much.
func TestManyRecordsWithoutBlobs(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil).withoutBlobs()
	const fits, tooMany = 30, 50 // of 50 KB
	for name, c := range map[string]struct{ steps, handOver int }{
		"resume": {fits, 0}, "resume with too many": {tooMany, 0}, "next execution": {fits, 1}, "next execution with too many": {tooMany, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wf := s.load(fmt.Sprintf(`
config: {max_steps: 1000}
nodes:
  - {name: loop, type: while_loop, condition: (state.n or 0) < %d, max_iterations: 200, body: [{name: inc, run: 'return {n = (state.n or 0) + 1, text = string.rep("x", 50000)}'}]}
  - {name: drop, run: "return {text = tea.null}"}
  - {name: one, uses: probe.call, with: {value: 1}, output: got}
  - {name: two, uses: probe.call, with: {value: 2}, output: got}
  - {name: check, run: 'if not state.ok then error("not yet") end'}
`, c.steps))
			run := host.NewRunID()
			res, err := Engine{handOver: c.handOver}.Run(t.Context(), s.flags, teacmd.Job{Workflow: wf, Options: host.RunOptions{RunID: run}})
			if c.steps == tooMany && c.handOver > 0 {
				if !refusedForSize(err) {
					t.Errorf("got %v, %v", res, err)
				}
				return
			}
			if err != nil || res.Status != flow.Failed {
				t.Fatalf("got %v, %v", res, err)
			}
			res, err = Engine{}.Resume(t.Context(), s.flags, run, teacmd.Job{Workflow: wf, Options: host.RunOptions{Input: map[string]any{"ok": true}}})
			if c.steps == tooMany {
				if !refusedForSize(err) {
					t.Errorf("got %v, %v", res, err)
				}
				return
			}
			if err != nil || res.Status != flow.Done {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
}

// The events of a run need more than one answer, with which a large state does not
// fit.
func TestManyMediumEvents(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	with := newSite(t, h, nil)
	for name, s := range map[string]*site{"with": with, "without": with.withoutBlobs()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logged := 0
			res := s.run(t.Context(), `
nodes:
  - {name: all, type: dynamic_parallel, items: "{{ range(60) | list }}", max_concurrency: 10, action: {uses: trace.log, with: {message: "{{ 'x' * 50000 }}"}}, fan_in: end}
  - {name: end, run: 'return {n = #parallel_results, text = string.rep("x", 1900000)}'}
`, host.RunOptions{Events: func(e flow.Event) {
				if e.Type == flow.EventLog {
					logged++
				}
			}})
			if res.Status != flow.Done || logged != 60 {
				t.Errorf("got %s with %d records, %v", res.Status, logged, res.Err)
			}
		})
	}
}

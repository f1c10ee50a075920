package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// A run that has begun stays with the workers of its generation until it is handed
// over, and then needs a later one.
func TestUpgradeHandsRunsOver(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newClient(t, h, nil)
	stop := s.start(s.worker)
	res := s.run(t.Context(), `
nodes:
  - {name: first, uses: probe.call, with: {value: 1}, output: first}
  - {name: ask, uses: human.ask, with: {question: "go?", choices: ["yes", "no"]}, output: answer}
  - {name: second, uses: probe.call, with: {value: 2}, output: second}
`, host.RunOptions{})
	if res.Status != flow.Waiting {
		t.Fatalf("got %s, %v", res.Status, res.Err)
	}
	s.handOver(1)
	answered := make(chan *flow.Result)
	warnings := make(chan string, 100)
	go func() {
		wf := s.load("nodes: [{name: any}]")
		got, err := Engine{}.Resume(t.Context(), s.flags, res.RunID, teacmd.Job{Workflow: wf, Options: host.RunOptions{Answers: map[string]any{"ask:ask": "yes"}}, Warn: func(m string) { warnings <- m }})
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	about, err := s.describe(t.Context(), res.RunID, "")
	if err != nil {
		t.Fatal(err)
	}
	first := about.GetWorkflowExecutionInfo().GetFirstRunId()
	eventually(t, "the old worker leaves the run", func() bool {
		about, err := s.describe(t.Context(), res.RunID, "")
		return err == nil && about.GetPendingWorkflowTask().GetAttempt() > 1 && about.GetWorkflowExecutionInfo().GetExecution().GetRunId() != first
	})
	stop()
	s.start(s.later())
	got := <-answered
	if got == nil || got.Status != flow.Done || got.State["second"] == nil {
		t.Fatalf("got %v", got)
	}
	if calls := p.take(res.RunID); len(calls) != 2 || !strings.HasPrefix(calls[0], "first ") || !strings.HasPrefix(calls[1], "second ") {
		t.Errorf("the calls were %q", calls)
	}
	list := s.histories(res.RunID, first)
	if len(list) != 2 {
		t.Fatalf("there are %d executions", len(list))
	}
	s.replay(list[0])
	s.worker.generation++
	s.replay(list[1])
}

// later returns a worker of the generation after that of the site.
func (s *site) later() *worker {
	s.t.Helper()
	k := s.on(s.worker.workflows.host)
	k.generation = s.worker.generation + 1
	return k
}

// handOver hands n runs over to a later worker that is gone before it takes them.
func (s *site) handOver(n int) {
	s.t.Helper()
	to := s.later()
	to.handsOver = true // to one later still, so it begins nothing
	stop := s.start(to)
	defer stop()
	eventually(s.t, "the runs are listed, and the later worker polls", func() bool {
		asked, err := s.worker.handOverAll(s.t.Context(), s.flags.Queue)
		return err == nil && asked == n
	})
}

const askAndCall = `
nodes:
  - {name: ask, uses: human.ask, with: {question: "go?", choices: ["yes", "no"]}, output: answer}
  - {name: call, uses: probe.call, with: {value: 1}, output: got}
`

// asked returns a run that waits for an answer.
func (s *site) asked() *flow.Result {
	s.t.Helper()
	res := s.run(s.t.Context(), askAndCall, host.RunOptions{})
	if res.Status != flow.Waiting {
		s.t.Fatalf("got %s, %v", res.Status, res.Err)
	}
	eventually(s.t, "the run is listed", func() bool {
		list, err := Engine{}.Runs(s.t.Context(), s.flags)
		return err == nil && slices.ContainsFunc(list, func(e checkpoints.Entry) bool { return e.ID == res.RunID })
	})
	return res
}

// generationOf returns the generation that a run needs.
func (s *site) generationOf(run string) int {
	s.t.Helper()
	about, err := s.describe(s.t.Context(), run, "")
	if err != nil {
		s.t.Fatal(err)
	}
	var in start
	if err := s.data.FromPayload(s.histories(run, about.GetWorkflowExecutionInfo().GetExecution().GetRunId())[0].Events[0].GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0], &in); err != nil {
		s.t.Fatal(err)
	}
	return in.Generation
}

func TestHandOverWithoutLaterWorkerStrandsNoRun(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	res := s.asked()
	cmd := s.tea("-", "worker", "--hand-over")
	out, err := cmd.CombinedOutput()
	if want := "polls the queue " + s.flags.Queue; err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "nothing was handed over") {
		t.Errorf("%v, want %q in\n%s", err, want, out)
	}
	if out, err := s.tea("-", "worker", "--hand-over", "--take-back").CombinedOutput(); err == nil || !strings.Contains(string(out), "cannot be used together") {
		t.Errorf("%v\n%s", err, out)
	}
	if got := s.resumed(res, askAndCall, nil); got == nil || got.Status != flow.Done {
		t.Errorf("got %v", got)
	}
}

// The worker of the later version that was to take a run is gone.
func TestRunThatWasHandedOverIsTakenBack(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newClient(t, h, nil)
	stop := s.start(s.worker)
	res := s.asked()
	s.handOver(1)
	eventually(t, "the run is handed over", func() bool { return s.generationOf(res.RunID) == s.worker.generation+1 })
	want := "take the run back with `tea worker --take-back`"
	for _, args := range [][]string{{"runs", "show", res.RunID}, {"runs", "events", res.RunID}, {"resume", res.RunID}} {
		if out, _ := s.tea("-", append(args, "--engine", "temporal")...).CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("tea %q has no %q:\n%s", args, want, out)
		}
	}
	got := s.resumed(res, askAndCall, func(warning string) {
		if !strings.Contains(warning, want) {
			t.Errorf("the warning is %q, without %q", warning, want)
		}
		stop()
		back := s.on(h)
		back.takesBack = true
		stop = s.start(back)
	})
	if got == nil || got.Status != flow.Done {
		t.Fatalf("got %v", got)
	}
	if calls := p.take(res.RunID); len(calls) != 1 {
		t.Errorf("the calls were %q", calls)
	}
	stop()
	s.start(s.worker) // the run needs the flag no longer
	if out := s.output("runs", "events", res.RunID); !strings.Contains(out, "run_end") {
		t.Errorf("the events are\n%s", out)
	}
}

func TestHandOverLeavesRunsOfLaterWorkersThere(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil)
	later := s.later()
	s.start(later)
	res := s.asked()
	eventually(t, "the later worker polls", func() bool {
		asked, err := s.worker.handOverAll(t.Context(), s.flags.Queue)
		return err == nil && asked == 1
	})
	if got := s.resumed(res, askAndCall, nil); got == nil || got.Status != flow.Done {
		t.Errorf("got %v", got)
	}
	if n := s.generationOf(res.RunID); n != 0 {
		t.Errorf("the run needs the generation %d", n)
	}
}

// Its runs would stay behind when it stops.
func TestWorkerThatHandsOverBeginsNoRun(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil)
	s.worker.handsOver = true
	s.start(s.worker)
	res := s.warned(oneCall, host.RunOptions{}, func(warning string) {
		if want := "hands runs over"; !strings.Contains(warning, want) {
			t.Errorf("the warning is %q, without %q", warning, want)
		}
		s.start(s.later())
	})
	if res == nil || res.Status != flow.Done {
		t.Errorf("got %v", res)
	}
}

// The records of a run that continues are stored in segments, by their digests.
func TestRecordsAreStoredOnce(t *testing.T) {
	t.Parallel()
	const calls, size = 8, 256 << 10 // 2 MiB, and then three hops
	h, err := host.New(host.Options{Actions: []tea.Action{host.Func("big.make", "Makes a text.", func(_ context.Context, params map[string]any) (any, error) {
		n, ok := params["n"].(int64)
		if !ok {
			return "small", nil
		}
		return map[string]any{"text": strings.Repeat(fmt.Sprintf("%08d", n), size/8)}, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := newSite(t, h, nil)
	text := "config: {max_steps: 1000}\nnodes:\n"
	for i := range calls {
		text += fmt.Sprintf("  - {name: big%d, uses: big.make, with: {n: %[1]d}, output: big}\n", i)
	}
	for i := range 2*calls + 1 {
		text += fmt.Sprintf("  - {name: small%d, uses: big.make, with: {}, output: small}\n", i)
	}
	run := host.NewRunID()
	res, err := Engine{handOver: calls}.Run(t.Context(), s.flags, teacmd.Job{Workflow: s.load(text), Options: host.RunOptions{RunID: run}})
	if err != nil || res.Status != flow.Done {
		t.Fatalf("got %v, %v", res, err)
	}
	about, err := s.describe(t.Context(), run, "")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.histories(run, about.GetWorkflowExecutionInfo().GetFirstRunId())); n != 4 {
		t.Errorf("there are %d executions", n)
	}
	stored := 0
	if err := walkFiles(s.flags.Blobs, func(content string) { stored += len(content) }); err != nil {
		t.Fatal(err)
	}
	// The results, and the records that have them.
	if limit := 2*calls*size + 1<<20; stored > limit {
		t.Errorf("%d bytes are stored, more than %d", stored, limit)
	}
}

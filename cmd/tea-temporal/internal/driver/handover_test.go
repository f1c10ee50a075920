package driver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
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
	eventually(t, "the run is listed", func() bool {
		asked, err := s.handOverAll(t.Context(), s.flags.Queue)
		return err == nil && asked == 1
	})
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
	about, err := s.client.DescribeWorkflowExecution(t.Context(), res.RunID, "")
	if err != nil {
		t.Fatal(err)
	}
	first := about.GetWorkflowExecutionInfo().GetFirstRunId()
	eventually(t, "the old worker leaves the run", func() bool {
		about, err := s.client.DescribeWorkflowExecution(t.Context(), res.RunID, "")
		return err == nil && about.GetPendingWorkflowTask().GetAttempt() > 1 && about.GetWorkflowExecutionInfo().GetExecution().GetRunId() != first
	})
	stop()
	later := newWorker(s.connection, h, nil)
	later.generation++
	t.Cleanup(later.workflows.close)
	s.start(later)
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

// The records of a run that continues are stored in segments, by their digests.
func TestRecordsAreStoredOnce(t *testing.T) {
	t.Parallel()
	const calls, size = 32, 256 << 10 // 8 MiB, and then three hops
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
	about, err := s.client.DescribeWorkflowExecution(t.Context(), run, "")
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
	if limit := 2*calls*size + 2<<20; stored > limit {
		t.Errorf("%d bytes are stored, more than %d", stored, limit)
	}
}

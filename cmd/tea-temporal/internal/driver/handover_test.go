package driver

import (
	"strings"
	"testing"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
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

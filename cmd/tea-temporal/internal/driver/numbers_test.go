package driver

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// TEA_TEMPORAL_NUMBERS prints what runs on the development server cost. They depend
// on what else the machine does.
func TestNumbers(t *testing.T) { //nolint:paralleltest // time is measured
	if os.Getenv("TEA_TEMPORAL_NUMBERS") == "" {
		t.Skip("set TEA_TEMPORAL_NUMBERS=1")
	}
	h, err := host.New(host.Options{Actions: []tea.Action{host.Func("none.call", "Does nothing.", func(context.Context, map[string]any) (any, error) { return map[string]any{"success": true}, nil })}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := newSite(t, h, nil)
	s.start(s.on(h))
	timed := func(text string, o host.RunOptions) (time.Duration, string) {
		begin := time.Now()
		res := s.run(t.Context(), text, o)
		if res.Status != flow.Done {
			t.Fatal(res.Err)
		}
		return time.Since(begin), res.RunID
	}
	// A run begins with the start of the client.
	chain := func(n int) string {
		text := "config: {max_steps: 10000}\nnodes:\n"
		for i := range n {
			text += fmt.Sprintf("  - {name: n%d, uses: none.call}\n", i)
		}
		return text
	}
	timed(chain(1), host.RunOptions{})
	took, run := timed(chain(1000), host.RunOptions{})
	events, size := s.cost(run)
	t.Logf("chain of 1,000 calls: %v, %v a node, %.1f events and %d bytes a node", took.Round(time.Millisecond), took/1000, float64(events)/1000, size/1000)
	took, run = timed(chain(1000), host.RunOptions{Durability: flow.DurabilityAsync})
	events, size = s.cost(run)
	t.Logf("the same with local activities: %v, %v a node, %.1f events and %d bytes a node", took.Round(time.Millisecond), took/1000, float64(events)/1000, size/1000)
	took, run = timed("nodes:\n  - {name: all, type: dynamic_parallel, items: \"{{ range(900) | list }}\", action: {uses: none.call}}\n", host.RunOptions{})
	events, size = s.cost(run)
	t.Logf("map of 900 items, two workers: %v, %.1f events and %d bytes an item", took.Round(time.Millisecond), float64(events)/900, size/900)
	wf := s.load(chain(20))
	begin := time.Now()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, err := (Engine{}).Run(t.Context(), s.flags, teacmd.Job{Workflow: wf}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	took = time.Since(begin)
	t.Logf("100 runs of 20 calls: %v, %.0f calls a second", took.Round(time.Millisecond), 2000/took.Seconds())
}

// cost returns the number of events and the size of the histories of a run.
func (s *site) cost(run string) (events, size int) {
	s.t.Helper()
	about, err := s.client.DescribeWorkflowExecution(s.t.Context(), run, "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range s.histories(run, about.GetWorkflowExecutionInfo().GetFirstRunId()) {
		events += len(h.GetEvents())
		size += proto.Size(h)
	}
	return events, size
}

package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// TEA_TEMPORAL_NUMBERS prints what so many calls on the development server cost; 1
// means 1,000. The times depend on what else the machine does.
func TestNumbers(t *testing.T) { //nolint:paralleltest // time is measured
	calls, _ := strconv.Atoi(os.Getenv("TEA_TEMPORAL_NUMBERS"))
	if calls == 0 {
		t.Skip("set TEA_TEMPORAL_NUMBERS=1")
	}
	if calls == 1 {
		calls = 1000
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
	report := func(what string, n int, text string, o host.RunOptions) {
		own, others := cpuTimes(t)
		took, run := timed(text, o)
		nowOwn, nowOthers := cpuTimes(t)
		events, size := s.cost(run)
		t.Logf("%s: %v, %v each, %.1f events and %d bytes; of the processor %v, and of the server %v each", what, took.Round(time.Millisecond),
			took/time.Duration(n), float64(events)/float64(n), size/n, (nowOwn-own)/time.Duration(n), (nowOthers-others)/time.Duration(n))
	}
	report(fmt.Sprintf("chain of %d calls", calls), calls, chain(calls), host.RunOptions{})
	report("the same with local activities", calls, chain(calls), host.RunOptions{Durability: flow.DurabilityAsync})
	items := calls * 9 / 10
	report(fmt.Sprintf("map of %d items, two workers", items), items, fmt.Sprintf("nodes:\n  - {name: all, type: dynamic_parallel, items: \"{{ range(%d) | list }}\", action: {uses: none.call}}\n", items), host.RunOptions{})
	wf := s.load(chain(20))
	begin := time.Now()
	own, others := cpuTimes(t)
	var wg sync.WaitGroup
	for range calls / 10 {
		wg.Go(func() {
			if _, err := (Engine{}).Run(t.Context(), s.flags, teacmd.Job{Workflow: wf}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	nowOwn, nowOthers := cpuTimes(t)
	t.Logf("%d runs of 20 calls: %v, %.0f calls a second; of the processor %v, and of the server %v each", calls/10, took.Round(time.Millisecond), float64(2*calls)/took.Seconds(), (nowOwn-own)/time.Duration(2*calls), (nowOthers-others)/time.Duration(2*calls))
}

// cpuTimes returns the time of the processor that this process and its children,
// among them the server, have used.
func cpuTimes(t *testing.T) (own, children time.Duration) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range list {
		raw, _ := os.ReadFile(file) // of a process that has ended
		_, text, _ := strings.Cut(string(raw), ") ")
		fields := strings.Fields(text)
		if len(fields) < 13 {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		used := time.Duration(user+system) * time.Second / 100
		if file == fmt.Sprintf("/proc/%d/stat", os.Getpid()) {
			own = used
		} else if fields[1] == strconv.Itoa(os.Getpid()) {
			children += used
		}
	}
	return own, children
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

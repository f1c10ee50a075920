package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
	calls := measuredCalls(t)
	h := newEmptyHost(t)
	s := newSite(t, h, nil)
	s.start(s.on(h))
	s.timed(chain(1), host.RunOptions{}) // a run begins with the start of the client
	report := func(what string, n int, text string, o host.RunOptions) {
		own, others := cpuTimes(t)
		took, run := s.timed(text, o)
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

// TestNumbersWithAFile prints what a call costs on a server that stores its runs in a
// file, relative to the time that the disk takes in the same seconds.
func TestNumbersWithAFile(t *testing.T) { //nolint:paralleltest // time is measured
	calls := measuredCalls(t)
	_, address := ownServer(t)
	s := newClientAt(t, newEmptyHost(t), address)
	s.start(s.worker)
	s.timed(chain(1), host.RunOptions{})
	disk := diskSync(t)
	took, _ := s.timed(chain(calls), host.RunOptions{})
	disk = (disk + diskSync(t)) / 2
	each := took / time.Duration(calls)
	t.Logf("chain of %d calls, with a file: %v, %v each; fdatasync took %v before and after: %.1f of them each", calls, took.Round(time.Millisecond), each, disk, float64(each)/float64(disk))
}

func measuredCalls(t *testing.T) int {
	t.Helper()
	calls, _ := strconv.Atoi(os.Getenv("TEA_TEMPORAL_NUMBERS"))
	switch calls {
	case 0:
		t.Skip("set TEA_TEMPORAL_NUMBERS=1")
	case 1:
		return 1000
	}
	return calls
}

// diskSync returns the time of an fdatasync of a page.
func diskSync(t *testing.T) time.Duration {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "page"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const syncs = 200
	page := make([]byte, 4096)
	begin := time.Now()
	for range syncs {
		if _, err := f.Write(page); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begin) / syncs
}

// newEmptyHost returns a host with the action none.call.
func newEmptyHost(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.New(host.Options{Actions: []tea.Action{host.Func("none.call", "Does nothing.", func(context.Context, map[string]any) (any, error) { return map[string]any{"success": true}, nil })}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// chain is a workflow with so many calls, one after another.
func chain(n int) string {
	text := "config: {max_steps: 10000}\nnodes:\n"
	for i := range n {
		text += fmt.Sprintf("  - {name: n%d, uses: none.call}\n", i)
	}
	return text
}

// timed returns the time that a run takes.
func (s *site) timed(text string, o host.RunOptions) (took time.Duration, run string) {
	s.t.Helper()
	begin := time.Now()
	res := s.run(s.t.Context(), text, o)
	if res.Status != flow.Done {
		s.t.Fatal(res.Err)
	}
	return time.Since(begin), res.RunID
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
	about, err := s.describe(s.t.Context(), run, "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range s.histories(run, about.GetWorkflowExecutionInfo().GetFirstRunId()) {
		events += len(h.GetEvents())
		size += proto.Size(h)
	}
	return events, size
}

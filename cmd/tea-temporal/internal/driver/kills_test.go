package driver

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// recorder counts the calls that begin, by node and key.
type recorder struct {
	listener net.Listener
	mu       sync.Mutex
	begun    map[string]int
}

func newRecorder(t testing.TB) *recorder {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	r := &recorder{listener: l, begun: map[string]int{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				line, err := bufio.NewReader(conn).ReadString('\n')
				if err != nil {
					return
				}
				r.mu.Lock()
				r.begun[strings.TrimSpace(line)]++
				r.mu.Unlock()
				_, _ = fmt.Fprintln(conn, "go") // the worker can be gone
			}()
		}
	}()
	return r
}

func (r *recorder) count() (calls int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.begun {
		calls += n
	}
	return calls
}

// process is a process that is killed and started again.
type process struct {
	start func() *exec.Cmd
	cmd   *exec.Cmd
}

func (p *process) run(t testing.TB) {
	t.Helper()
	p.cmd = p.start()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// ownServer returns a server that stores its runs in a file.
func ownServer(t testing.TB) (p *process, address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(address)
	file := filepath.Join(t.TempDir(), "temporal.db")
	p = &process{start: func() *exec.Cmd {
		args := append([]string{"server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port, "--db-filename", file, "--log-level", "never"}, tuned()...)
		return exec.CommandContext(context.Background(), program(t), args...) //nolint:gosec // of the tests
	}}
	p.run(t)
	t.Cleanup(func() { p.kill() })
	return p, address
}

// newClientAt returns a queue of a server that is starting.
func newClientAt(t testing.TB, h *host.Host, address string) *site {
	t.Helper()
	s := &site{t: t, flags: teacmd.EngineFlags{Engine: "temporal", TemporalFlags: teacmd.TemporalFlags{Temporal: address, Queue: "tests", Blobs: t.TempDir()}}}
	eventually(t, "the server is up", func() (up bool) {
		var err error
		s.connection, err = dial(t.Context(), s.flags.TemporalFlags, discard)
		return err == nil
	})
	t.Cleanup(s.close)
	s.worker = newWorker(s.connection, h, nil)
	return s
}

const killed = `
nodes:
  - {name: first, uses: mark.call, output: a}
  - {name: all, type: dynamic_parallel, items: "{{ range(8) | list }}", max_concurrency: 4, action: {uses: mark.call}, output: all}
  - {name: second, uses: mark.call, output: b}
  - {name: third, uses: mark.call, output: c}
`

// callsOfKilled is the number of calls of the workflow killed.
const callsOfKilled = 11

// TEA_TEMPORAL_KILLS is the number of random kills of two workers and the server,
// while runs are started one after another.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	kills, err := strconv.Atoi(os.Getenv("TEA_TEMPORAL_KILLS"))
	if err != nil {
		t.Skip("set TEA_TEMPORAL_KILLS to the number of kills; make temporal-kills does")
	}
	rec := newRecorder(t)
	report := rec.listener.Addr().String()
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{marks(report)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	server, address := ownServer(t)
	s := newClientAt(t, h, address)
	processes := []*process{server}
	for range 2 {
		p := &process{start: func() *exec.Cmd { return s.tea(report, "worker", "-q") }}
		p.run(t)
		t.Cleanup(p.kill)
		processes = append(processes, p)
	}

	const lanes = 12
	wf := s.load(killed)
	stop := make(chan struct{})
	var mu sync.Mutex
	var runs []string
	var wg sync.WaitGroup
	finish := sync.OnceFunc(func() { close(stop); wg.Wait() })
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); finish() }()
	for range lanes {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				run := host.NewRunID()
				res, err := Engine{}.Run(ctx, s.flags, teacmd.Job{Workflow: wf, Options: host.RunOptions{RunID: run}})
				if err != nil {
					t.Logf("run %s: %v", run, err) // the server is not reachable: nothing has started, or its end is read below
				} else if res.Status != flow.Done && ctx.Err() == nil {
					t.Errorf("run %s is %s: %v", run, res.Status, res.Err)
				}
				mu.Lock()
				runs = append(runs, run)
				mu.Unlock()
			}
		})
	}
	random := rand.New(rand.NewPCG(15, uint64(kills))) //nolint:gosec // not a secret
	begin := time.Now()
	for i := range kills {
		// The next kill comes after some more calls, so that there is something to lose.
		more := rec.count() + 1 + random.IntN(12)
		eventually(t, "calls are made", func() bool { return rec.count() >= more })
		p := server
		if random.IntN(5) > 0 {
			p = processes[1+random.IntN(2)]
		}
		p.kill()
		p.run(t)
		if i%20 == 19 {
			t.Logf("%d kills after %v, %d calls", i+1, time.Since(begin).Round(time.Second), rec.count())
		}
	}
	finish()
	s.audit(rec, runs)
	t.Logf("%d kills in %v: %d runs", kills, time.Since(begin).Round(time.Second), len(runs))
}

// audit compares the calls that began with the histories: none is lost, and none
// begins again that has an end.
func (s *site) audit(rec *recorder, runs []string) {
	s.t.Helper()
	expected, repeated := 0, 0
	for _, run := range runs {
		about, err := s.describe(s.t.Context(), run, "")
		if err != nil {
			continue // it did not start
		}
		if status := about.GetWorkflowExecutionInfo().GetStatus(); status != enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			s.t.Errorf("run %s is %s", run, status)
		}
		var calls []call
		attempts := map[int64]int{} // by the event of the schedule
		var order []int64
		ended := map[int64]int{}
		for _, h := range s.histories(run, about.GetWorkflowExecutionInfo().GetFirstRunId()) {
			for _, e := range h.GetEvents() {
				if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
					var c call
					if err := s.data.FromPayloads(a.GetInput(), &c); err != nil {
						s.t.Fatal(err)
					}
					calls, order = append(calls, c), append(order, e.GetEventId())
				}
				if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
					attempts[a.GetScheduledEventId()] = int(a.GetAttempt())
				}
				if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
					ended[a.GetScheduledEventId()]++
				}
			}
		}
		if len(calls) != callsOfKilled {
			s.t.Errorf("run %s has %d calls", run, len(calls))
		}
		expected += callsOfKilled
		keys := map[string]bool{}
		for i, c := range calls {
			id := c.Call.Node + " " + c.Call.IdempotencyKey
			rec.mu.Lock()
			begun := rec.begun[id]
			delete(rec.begun, id)
			rec.mu.Unlock()
			if keys[id] || ended[order[i]] != 1 || begun == 0 || begun > attempts[order[i]] {
				s.t.Errorf("run %s: %s began %d times in %d attempts, with %d ends", run, id, begun, attempts[order[i]], ended[order[i]])
			}
			keys[id] = true
			repeated += begun - 1
		}
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if len(rec.begun) > 0 {
		s.t.Errorf("%d calls began that no history has, or with another key: %v", len(rec.begun), rec.begun)
	}
	s.t.Logf("%d calls, of which %d were under way at a kill and repeated with the same key", expected, repeated)
}

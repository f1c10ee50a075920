package driver

import (
	"fmt"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// on returns a worker with another host for queues of the site.
func (s *site) on(h *host.Host) *worker {
	s.t.Helper()
	k := newWorker(s.connection, h, nil)
	s.t.Cleanup(k.workflows.close)
	return k
}

// offer starts a worker that only executes calls.
func (s *site) offer(k *worker, queue string) {
	s.t.Helper()
	stop, err := k.offer(queue)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(stop)
}

// bareHost returns a host with nothing but the actions of tea.
func bareHost(t testing.TB) *host.Host {
	t.Helper()
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

const callAndCallThrough = `
nodes:
  - {name: call, uses: probe.call, with: {value: 1}, output: got}
  - {name: through, uses: probe.through, with: {value: 2}, output: more}
  - {name: lua, run: 'return {last = tea.action("probe.call", {value = state.got.value + 2}).value}'}
`

// The workers of the run's queue do not have the plugin.
func TestCallsGoToTheWorkerWithThePlugin(t *testing.T) {
	t.Parallel()
	for _, durability := range []flow.Durability{flow.DurabilitySync, flow.DurabilityAsync} {
		t.Run(string(durability), func(t *testing.T) {
			t.Parallel()
			h, p := newHost(t)
			s := newClient(t, h, nil)
			s.start(s.on(bareHost(t)))
			s.offer(s.worker, pluginQueue(s.flags.Queue, "probe"))
			res := s.run(t.Context(), callAndCallThrough, host.RunOptions{Durability: durability})
			if res.Status != flow.Done || res.State["last"] != int64(3) {
				t.Errorf("got %s %v, %v", res.Status, res.State, res.Err)
			}
			if calls := p.take(res.RunID); len(calls) != 3 {
				t.Errorf("the calls were %q", calls)
			}
			s.replayAll(res.RunID)
		})
	}
}

func TestQueuesRouteActions(t *testing.T) {
	t.Parallel()
	h, there := newHost(t)
	s := newSite(t, h, nil)
	other, here := newHost(t)
	s.offer(s.on(other), s.flags.Queue+"-db")
	res := s.run(t.Context(), fmt.Sprintf("queues:\n  probe.*: nobody\n  probe.call: %s-db\n  probe.through: {queue: %[1]s}\n", s.flags.Queue)+callAndCallThrough, host.RunOptions{})
	if res.Status != flow.Done {
		t.Errorf("got %s, %v", res.Status, res.Err)
	}
	// probe.through makes no call itself that its host would count.
	if calls := here.take(res.RunID); len(calls) != 3 {
		t.Errorf("the calls on the queue of probe.call were %q", calls)
	}
	if calls := there.take(res.RunID); len(calls) != 0 {
		t.Errorf("the calls on the queue of the run were %q", calls)
	}
}

func TestQueuesHaveRates(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newSite(t, h, nil)
	s.offer(s.worker, s.flags.Queue+"-slow")
	begin := time.Now()
	res := s.run(t.Context(), fmt.Sprintf("queues: {\"probe.*\": {queue: %s-slow, per_second: 2}}\n", s.flags.Queue)+`
nodes:
  - {name: all, type: dynamic_parallel, items: "{{ range(8) | list }}", action: {uses: probe.call, with: {value: "{{ item }}"}}}
`, host.RunOptions{})
	// The first calls can use what was not used before.
	if took := time.Since(begin); res.Status != flow.Done || took < 2*time.Second {
		t.Errorf("got %s after %v, %v", res.Status, took, res.Err)
	}
	if calls := p.take(res.RunID); len(calls) != 8 {
		t.Errorf("the calls were %q", calls)
	}
}

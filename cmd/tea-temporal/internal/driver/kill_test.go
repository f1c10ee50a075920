package driver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// asWorker makes the test binary a program with the command worker. Its value is
// the address to which the action mark.call reports.
const asWorker = "TEA_TEMPORAL_TEST_WORKER"

// workerMain is the main function of a worker of the tests.
func workerMain(report string) int {
	return teacmd.Main(teacmd.Options{Engine: Engine{}, EngineCommands: teacmd.EngineCommands(), Commands: []teacmd.Command{Command()}, Bundles: []*tea.Bundle{marks(report)}})
}

// marks has an action that reports its call, and returns when it is told to.
func marks(report string) *tea.Bundle {
	return &tea.Bundle{Name: "mark", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("mark.call", "Reports.", func(ctx context.Context, req *tea.Request, _ struct{}) (probeResult, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", report)
			if err != nil {
				return probeResult{}, err
			}
			defer conn.Close()
			if _, err := fmt.Fprintf(conn, "%s %s\n", req.Node, req.IdempotencyKey); err != nil {
				return probeResult{}, err
			}
			_, err = bufio.NewReader(conn).ReadString('\n')
			return probeResult{Success: true, Value: req.Node}, err
		}),
	}}
}

// tea returns a command of tea for the queue.
func (s *site) tea(report string, args ...string) *exec.Cmd {
	s.t.Helper()
	return command(s.t, report, append(args, "--temporal", s.flags.Temporal, "--queue", s.flags.Queue, "--blobs", s.flags.Blobs)...)
}

// command returns a command of tea.
func command(t testing.TB, report string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(context.Background(), self, args...) //nolint:gosec // the test itself
	cmd.Dir = home
	cmd.Env = append(os.Environ(), asWorker+"="+report, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "XDG_CACHE_HOME="+home, "TEA_PLUGINS=")
	return cmd
}

// startWorker starts a process with a worker, which is killed at the end.
func (s *site) startWorker(report string, env ...string) *exec.Cmd {
	s.t.Helper()
	cmd := s.tea(report, "worker")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestKilledWorkerRepeatsOnlyWhatWasRunning(t *testing.T) {
	t.Parallel()
	res, seen := killedInSecond(t, "", host.RunOptions{})
	if res.Status != flow.Done || len(seen) != 4 || seen[1] != seen[2] || len(slices.Compact(slices.Clone(seen))) != 3 {
		t.Errorf("the run is %s (%v), and the calls were %q", res.Status, res.Err, seen)
	}
}

// With each durability, also where other calls are local activities.
func TestKilledWorkerDoesNotRepeatAnEffect(t *testing.T) {
	t.Parallel()
	for _, durability := range []flow.Durability{flow.DurabilitySync, flow.DurabilityAsync} {
		t.Run(string(durability), func(t *testing.T) {
			t.Parallel()
			res, seen := killedInSecond(t, "effects: once, ", host.RunOptions{Durability: durability})
			if e := tea.AsError(res.Err); res.Status != flow.Failed || e.Type != tea.UnknownOutcome || len(seen) != 2 {
				t.Errorf("the run is %s (%v), and the calls were %q", res.Status, res.Err, seen)
			}
		})
	}
}

// killedInSecond runs a workflow whose worker dies during the call of its second node,
// which has these keys. It returns the calls.
func killedInSecond(t *testing.T, keys string, o host.RunOptions) (*flow.Result, []string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	report := listener.Addr().String()
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{marks(report)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := newClient(t, h, nil)
	first := s.startWorker(report)
	calls := make(chan []string)
	go func() {
		var seen []string
		held := false
		for {
			conn, err := listener.Accept()
			if err != nil {
				calls <- seen
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			seen = append(seen, strings.TrimSpace(line))
			if strings.HasPrefix(line, "second ") && !held {
				held = true
				_ = first.Process.Kill() // with the call under way
				_ = first.Wait()
				s.startWorker(report)
			} else if _, err := fmt.Fprintln(conn, "go"); err != nil {
				t.Error(err)
			}
			_ = conn.Close()
		}
	}()
	res := s.run(t.Context(), `
nodes:
  - {name: first, uses: mark.call, output: a}
  - {name: second, uses: mark.call, `+keys+`output: b}
  - {name: third, uses: mark.call, output: c}
`, o)
	_ = listener.Close()
	return res, <-calls
}

package driver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	plugin "github.com/the-edge-agent/tea/sdk/serve"
)

// asPlugin makes the test binary a plugin. Its value is the version and the address
// to which the action swap.call reports.
const asPlugin = "TEA_TEMPORAL_TEST_PLUGIN"

// pluginMain is the main function of the plugin.
func pluginMain(version, report string) {
	plugin.Main(tea.Bundle{Name: "swap", Version: version, Actions: []tea.Action{
		tea.NewAction("swap.call", "Reports.", func(ctx context.Context, req *tea.Request, _ struct{}) (probeResult, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", report)
			if err != nil {
				return probeResult{}, err
			}
			defer conn.Close()
			if _, err := fmt.Fprintf(conn, "%s %s %s\n", req.Node, req.IdempotencyKey, version); err != nil {
				return probeResult{}, err
			}
			_, err = bufio.NewReader(conn).ReadString('\n')
			return probeResult{Success: true, Value: version}, err
		}),
	}})
}

// putPlugin puts a version of the plugin in place.
func putPlugin(dir, version, report string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "new")
	script := fmt.Sprintf("#!/bin/sh\n%s='%s %s' exec %s\n", asPlugin, version, report, self)
	return errors.Join(os.WriteFile(file, []byte(script), 0o700), os.Rename(file, filepath.Join(dir, "tea-plugin-swap"))) //nolint:gosec // a program
}

// swapped counts the calls of the plugin by key. It replaces the plugin after some of
// them, and answers the call of the node held when the new version has been called.
type swapped struct {
	net.Listener
	replace func() error
	mu      sync.Mutex
	begun   map[string]int
	held    net.Conn
	heldBy  string
	failed  error
}

func (s *swapped) serve() {
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil {
			err = s.take(conn, strings.Fields(line))
		}
		s.mu.Lock()
		s.failed = errors.Join(s.failed, err)
		s.mu.Unlock()
	}
}

func (s *swapped) take(conn net.Conn, call []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	node, key, version := call[0], call[1], call[2]
	if s.begun[key]++; strings.HasSuffix(node, "held") {
		s.held, s.heldBy = conn, version
		return s.replace()
	}
	if version == "2.0.0" && s.held != nil {
		_, err := fmt.Fprintln(s.held, "go")
		if err = errors.Join(err, s.held.Close()); err != nil {
			return err
		}
		s.held = nil
	}
	_, err := fmt.Fprintln(conn, "go")
	return errors.Join(err, conn.Close())
}

// A version is replaced under the worker while one call is under way and others are
// made: the former ends on the old version, the latter reach the new one.
func TestPluginIsSwappedUnderARunningWorker(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	report, dir := l.Addr().String(), t.TempDir()
	rec := &swapped{Listener: l, begun: map[string]int{}, replace: func() error { return putPlugin(dir, "2.0.0", report) }}
	go rec.serve()
	if err := putPlugin(dir, "1.0.0", report); err != nil {
		t.Fatal(err)
	}
	s := newClient(t, bareHost(t), nil)
	worker := s.tea("-", "worker", "--plugins", dir)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	})
	// The loop ends when the new version answers.
	out := output(t, s.tea("-", "run", write(t, "flow.yaml", `
config: {max_steps: 1000000}
nodes:
  - {name: fan}
  - {name: held, uses: swap.call, output: {held: "{{ result.value }}"}}
  - name: loop
    type: while_loop
    condition: state.version != "2.0.0"
    max_iterations: 1000
    body:
      - name: calls
        type: while_loop
        condition: state.version != "2.0.0"
        max_iterations: 1000
        body:
          - {name: call, uses: swap.call, output: {version: "{{ result.value }}"}}
          - {name: count, run: "return {calls = (state.calls or 0) + 1}"}
  - name: join
    run: |
      local state = {}
      for _, r in ipairs(parallel_results) do
        for k, v in pairs(r.state) do state[k] = v end
      end
      return {held = state.held, version = state.version, calls = state.calls}
edges:
  - {from: fan, parallel: [held, loop], fan_in: join}
  - {from: held, to: join}
  - {from: loop, to: join}
`), "-q", "--engine", "temporal", "--plugins", dir))
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if want := fmt.Sprintf(`"calls": %d`, len(rec.begun)-1); rec.failed != nil || rec.heldBy != "1.0.0" || !strings.Contains(out, want) || !strings.Contains(out, `"held": "1.0.0"`) || !strings.Contains(out, `"version": "2.0.0"`) {
		t.Errorf("%d calls of which version %s held one (%v), and the state\n%s", len(rec.begun), rec.heldBy, rec.failed, out)
	}
	for key, n := range rec.begun {
		if n != 1 {
			t.Errorf("the call %s began %d times", key, n)
		}
	}
	t.Logf("%d calls", len(rec.begun))
}

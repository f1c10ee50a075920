package examples

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// buildPump builds the simulator of a pump.
func buildPump(t *testing.T, to string) {
	t.Helper()
	peertest.Long(t, "it builds a simulator")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", to, "./pump/simulator").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestPump runs the commands of the example pump against its simulator.
func TestPump(t *testing.T) {
	t.Parallel()
	simulator := filepath.Join(t.TempDir(), "simulator")
	buildPump(t, simulator)
	ctx, stop := context.WithCancel(context.Background())
	pump := exec.CommandContext(ctx, simulator, "127.0.0.1:0")
	pump.WaitDelay = 10 * time.Second
	out, err := pump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := pump.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = pump.Wait() })
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(strings.TrimPrefix(line, "pump: listening at "))
	dir, home := copyExample(t, "pump"), t.TempDir()
	readme, err := os.ReadFile("pump/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "tea serve . -c served") {
		t.Error("the README does not serve the example")
	}
	asksAboutThePump(t, dir, home, address)
	for _, c := range []struct {
		command string
		code    int
		shown   string
	}{
		{"tea run workflow.yaml -c runs", 130, ""},
		{`tea resume workflow.yaml -c runs --answer 'ask:ask="yes"'`, 0, "json"},
		{`tea call modbus.write '{"point": "speed", "value": 60}' -f workflow.yaml`, 1, ""},
		{"tea test --record", 0, ""},
		{"PUMP=127.0.0.1:1 tea test", 0, ""}, // nothing is there
	} {
		if !strings.Contains(string(readme), c.command) {
			t.Errorf("the README lacks %s", c.command)
		}
		got, err := shell(t.Context(), dir, home, fmt.Sprintf("export PUMP=%s; %s", address, c.command))
		if err != nil || got.code != c.code {
			t.Fatalf("%s: exit code %d, %v\n%s%s", c.command, got.code, err, got.stdout, got.stderr)
		}
		if c.shown != "" && !strings.Contains(string(readme), "```"+c.shown+"\n"+got.stdout+"```") {
			t.Errorf("the README does not show:\n%s", got.stdout)
		}
		if c.code == 1 {
			_, shown, _ := strings.Cut(string(readme), "```\npermission_denied: ")
			shown, _, _ = strings.Cut(shown, "\n")
			if diff := cmp.Diff(true, strings.Contains(got.stderr, shown)); diff != "" {
				t.Errorf("the README shows %q, the command %s", shown, got.stderr)
			}
		}
	}
	want, err := os.ReadFile("pump/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(filepath.Join(dir, "recorded.jsonl"))
	if diff := cmp.Diff(string(want), string(recorded)); diff != "" || err != nil {
		t.Errorf("the recording of the simulator differs: %v\n%s", err, diff)
	}
	if line, err := lines.ReadString('\n'); err != nil || line != "pump: speed 40 -> 0\n" {
		t.Errorf("the pump says %q, %v", line, err)
	}
}

// asksAboutThePump serves the example until its trigger has asked the question.
func asksAboutThePump(t *testing.T, dir, home, address string) {
	t.Helper()
	serve := exec.CommandContext(t.Context(), filepath.Join(bin, "tea"), "serve", ".", "-c", "served", "-v", "--listen", "127.0.0.1:0")
	serve.Dir, serve.Env, serve.WaitDelay = dir, append(environment(home), "PUMP="+address), time.Minute
	out, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&log, lines.Text())
		if strings.Contains(lines.Text(), "of pump: waiting") {
			_ = serve.Process.Signal(os.Interrupt) // Wait returns the error
			_, _ = io.Copy(&log, out)
			if err := serve.Wait(); err != nil {
				t.Errorf("tea serve: %v\n%s", err, &log)
			}
			return
		}
	}
	t.Fatalf("tea serve has asked nothing: %v\n%s", serve.Wait(), &log)
}

// TestKilledWriteIsNotRepeated kills tea, or the plugin, while a machine carries out a
// write and has not answered. The machine counts.
func TestKilledWriteIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"tea", "tea-plugin-device"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			writes := make(chan struct{}, 100)
			go silentMachine(l, writes)
			dir := t.TempDir()
			workflow := fmt.Sprintf(`
settings:
  modbus:
    servers: {pump: {url: "tcp://%s", timeout_seconds: 60}}
    points: {speed: {address: 0, write: {}}}
nodes:
  - name: stop
    uses: modbus.write
    retry: {max_retries: 3, backoff_base_ms: 1}
    with: {point: speed, value: 0}
`, l.Addr())
			if err := os.WriteFile(filepath.Join(dir, "flow.yaml"), []byte(workflow), 0o600); err != nil {
				t.Fatal(err)
			}
			run := exec.CommandContext(t.Context(), filepath.Join(bin, "tea"), "run", "flow.yaml", "-c", "runs")
			run.Dir, run.Env, run.WaitDelay = dir, environment(t.TempDir()), time.Minute
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			<-writes
			kill := fmt.Sprintf("kill -9 %d", run.Process.Pid)
			if victim != "tea" {
				kill = fmt.Sprintf("kill -9 $(ps -o pid=,comm= --ppid %d | awk '$2 ~ /^tea-plugin-devi/ {print $1}')", run.Process.Pid)
			}
			if got, err := shell(t.Context(), dir, dir, kill); err != nil || got.code != 0 {
				t.Fatalf("%s: %v\n%s", kill, err, got.stderr)
			}
			if err := run.Wait(); err == nil {
				t.Fatal("the run has succeeded")
			}
			got, err := shell(t.Context(), dir, t.TempDir(), "tea resume flow.yaml -c runs")
			if err != nil || got.code != 1 || !strings.Contains(got.stderr, "unknown_outcome: it is unknown whether modbus.write had its effect") {
				t.Errorf("exit code %d, %v\n%s", got.code, err, got.stderr)
			}
			if n := len(writes); n > 0 {
				t.Errorf("%d further writes", n)
			}
		})
	}
}

// silentMachine reads the writes of single registers, and answers none.
func silentMachine(l net.Listener, writes chan<- struct{}) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for request := make([]byte, 12); ; {
				if _, err := io.ReadFull(c, request); err != nil {
					return
				}
				writes <- struct{}{}
			}
		}()
	}
}

package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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

// startPump starts the simulator of a pump. lines has what it says.
func startPump(t *testing.T) (address string, lines *bufio.Reader) {
	t.Helper()
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
	lines = bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "pump: listening at ")), lines
}

// message is what a webhook of notify.send gets.
type message struct {
	Message string
	Actions []struct{ Label, URL string }
}

// webhook is a server that keeps the messages that it gets.
func webhook(t *testing.T) (url string, got chan message) {
	t.Helper()
	got = make(chan message, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Errorf("message: %v", err)
		}
		got <- m
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// TestPump runs the commands of the example pump against its simulator.
func TestPump(t *testing.T) {
	t.Parallel()
	address, lines := startPump(t)
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
	url, got := webhook(t)
	s := serveExample(t, dir, home, "PUMP="+address, "ANN="+url)
	s.await("of pump: waiting")
	m := <-got
	if m.Message != "The pressure is 8.7 bar. Stop the pump?" || len(m.Actions) != 2 || m.Actions[0].Label != "yes" || !strings.HasPrefix(m.Actions[0].URL, s.url+"/answer/") {
		t.Errorf("announced: %+v", m)
	}
	s.stop()
}

// server is a tea serve.
type server struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   io.Reader
	lines *bufio.Scanner
	log   strings.Builder
	url   string
}

// serveExample starts tea serve in a folder.
func serveExample(t *testing.T, dir, home string, env ...string) *server {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(stop)
	s := &server{t: t, cmd: exec.CommandContext(ctx, filepath.Join(bin, "tea"), "serve", ".", "-c", "served", "-v", "--listen", "127.0.0.1:0")}
	s.cmd.Dir, s.cmd.Env, s.cmd.WaitDelay = dir, append(environment(home), env...), time.Minute
	out, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.out, s.lines = out, bufio.NewScanner(out)
	_, s.url, _ = strings.Cut(s.await("serving at "), "serving at ")
	return s
}

// await returns the next line of the log that contains a text.
func (s *server) await(text string) string {
	s.t.Helper()
	for s.lines.Scan() {
		fmt.Fprintln(&s.log, s.lines.Text())
		if strings.Contains(s.lines.Text(), text) {
			return s.lines.Text()
		}
	}
	s.t.Fatalf("tea serve has not said %q: %v\n%s", text, s.cmd.Wait(), &s.log)
	return ""
}

// stop ends the server, which has no error.
func (s *server) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(os.Interrupt) // Wait returns the error
	_, _ = io.Copy(&s.log, s.out)
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("tea serve: %v\n%s", err, &s.log)
	}
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

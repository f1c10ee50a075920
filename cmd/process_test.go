//go:build linux

package teacmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// process is a tea that runs next to the test.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *os.File
	events *bufio.Reader
	stderr bytes.Buffer
}

// start begins `tea ARGS` in a directory that holds the files.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startWith(t, dir, func(*exec.Cmd) {}, args...)
}

// startWith is start with a change of the command.
func startWith(t *testing.T, dir string, change func(*exec.Cmd), args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command("tea", args...)}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "HOME="+dir, "LANG=C.UTF-8", "TERM=xterm")
	p.cmd.Stderr = &p.stderr
	var stdout *os.File
	var err error
	if p.stdout, stdout, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stdout.Close() })
	p.events = bufio.NewReader(p.stdout)
	p.cmd.Stdout = stdout
	change(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it can have ended
	return p
}

// until reads events up to the first of a type at a path.
func (p *process) until(event, path string) {
	p.t.Helper()
	for {
		line, err := p.events.ReadBytes('\n')
		if err != nil {
			p.t.Fatalf("the stream ends before %s of %s: %v\n%s", event, path, err, &p.stderr)
		}
		var e struct{ Event, Path string }
		if err := json.Unmarshal(line, &e); err != nil {
			p.t.Fatal(err)
		}
		if e.Event == event && e.Path == path {
			return
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end and returns the rest of stdout and the exit code.
func (p *process) exit() (rest string, code int) {
	p.t.Helper()
	data, err := io.ReadAll(p.events)
	if err != nil {
		p.t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return string(data), p.cmd.ProcessState.ExitCode()
}

const sleeper = `
nodes:
  - {name: first, run: "return {first = (state.first or 0) + 1}"}
  - name: nap
    if: not state.awake
    uses: time.sleep
    with: {seconds: 3600}
  - {name: last, run: "return {last = true}"}
`

func TestFirstSignalStopsWithACheckpoint(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		signal os.Signal
		want   string
		args   []string
	}{
		{os.Interrupt, "SIGINT", nil},
		{syscall.SIGTERM, "SIGTERM", []string{"-c", "runs"}},
	} {
		t.Run(test.want, func(t *testing.T) {
			t.Parallel()
			dir := workdir(t, map[string]string{"flow.yaml": sleeper})
			p := start(t, dir, append([]string{"run", "-s", "flow.yaml"}, test.args...)...)
			p.until("node_start", "nap")
			p.signal(test.signal)
			rest, code := p.exit()
			if code != 130 {
				t.Errorf("exit code = %d, want 130", code)
			}
			if !strings.Contains(rest, `"event":"run_end"`) || !strings.Contains(rest, `"state":{"first":1}`) {
				t.Errorf("no run_end with the state in:\n%s", rest)
			}
			for _, want := range []string{"stopped by " + test.want, "checkpoint: ", "resume with: tea resume "} {
				if !strings.Contains(p.stderr.String(), want) {
					t.Errorf("stderr lacks %q:\n%s", want, &p.stderr)
				}
			}
			resume(t, dir, test.args...)
		})
	}
}

// resume goes on with the sleeper, which must not run its first node again.
func resume(t *testing.T, dir string, args ...string) {
	t.Helper()
	p := start(t, dir, append([]string{"resume", "flow.yaml", "-i", `{"awake": true}`}, args...)...)
	out, code := p.exit()
	var state map[string]any
	if err := json.Unmarshal([]byte(out), &state); err != nil || code != 0 {
		t.Fatalf("resume exits with %d, %v:\n%s%s", code, err, out, &p.stderr)
	}
	if state["first"] != 1.0 || state["last"] != true {
		t.Errorf("state after the resume = %v", state)
	}
}

// A run whose events are not read hangs in its output, where the first signal
// cannot reach it.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	dir := workdir(t, map[string]string{"flow.yaml": `
config: {max_steps: 1000000000}
nodes: [{name: a, goto: a}]
`})
	p := start(t, dir, "run", "-s", "-q", "flow.yaml", "--durability", "off")
	p.untilStuck()
	p.signal(os.Interrupt)
	p.signal(syscall.SIGTERM) // another one, for the same may be merged
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("err = %v, want exit code 130", err)
	}
}

// untilStuck waits until the pipe of stdout is full.
func (p *process) untilStuck() {
	p.t.Helper()
	// A pipe has 16 pages of 4 KB, and a write that does not fit into the rest of
	// one begins another: two pages in a row have more than one page of data.
	const nearlyFull = 30_000
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for waiting := 0; waiting < nearlyFull; <-ticker.C {
		var err error
		if waiting, err = unix.IoctlGetInt(int(p.stdout.Fd()), unix.TIOCINQ); err != nil {
			p.t.Fatal(err)
		}
	}
}

func TestKilledRunContinues(t *testing.T) {
	t.Parallel()
	dir := workdir(t, map[string]string{"flow.yaml": sleeper})
	p := start(t, dir, "run", "-s", "flow.yaml", "-c", "runs")
	p.until("node_start", "nap")
	p.signal(os.Kill)
	if _, code := p.exit(); code != -1 {
		t.Errorf("exit code = %d, want none", code)
	}
	resume(t, dir, "-c", "runs")
}

// A follower sees the events of a run that goes on, up to its end.
func TestFollowEvents(t *testing.T) {
	t.Parallel()
	dir := workdir(t, map[string]string{"flow.yaml": sleeper})
	p := start(t, dir, "run", "-s", "flow.yaml", "-c", "runs")
	p.until("node_start", "nap")
	f := start(t, dir, "runs", "events", "--follow", "-c", "runs", "2")
	f.until("node_start", "nap")
	p.signal(os.Interrupt)
	if _, code := p.exit(); code != 130 {
		t.Errorf("exit code = %d, want 130", code)
	}
	f.until("run_end", "")
	if _, code := f.exit(); code != 0 {
		t.Errorf("the follower exits with %d", code)
	}
}

// An event reaches a reader of the stream when it happens.
func TestStreamIsNotBuffered(t *testing.T) {
	t.Parallel()
	dir := workdir(t, map[string]string{"flow.yaml": sleeper})
	p := start(t, dir, "run", "-s", "flow.yaml", "--durability", "off")
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		p.until("node_start", "nap")
	}()
	select {
	case <-seen:
	case <-time.After(time.Minute):
		t.Error("the event of a node that sleeps does not arrive")
	}
	p.signal(os.Interrupt)
	p.exit()
}

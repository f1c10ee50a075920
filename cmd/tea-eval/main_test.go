package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector sleeps a second before a process ends
	testscript.Main(m, map[string]func(){"tea": main, "tea-plugin-llm": model})
}

type askParams struct {
	Prompt string         `json:"prompt"`
	Model  string         `json:"model,omitempty"`
	Schema map[string]any `json:"schema,omitempty"`
}

// model is the plugin llm with a model that is polite if the prompt is. It writes each
// prompt to the file in ASKED.
func model() {
	ask := func(ctx context.Context, req *tea.Request, p askParams) (map[string]any, error) {
		f, err := os.OpenFile(os.Getenv("ASKED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if _, err := fmt.Fprintln(f, strconv.Quote(p.Prompt)); err != nil {
			return nil, err
		}
		switch {
		case strings.Contains(p.Prompt, "crash"):
			os.Exit(3)
		case strings.Contains(p.Prompt, "hang"):
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if err := req.Usage(ctx, tea.Usage{Tokens: 10, USD: 0.01}); err != nil {
			return nil, err
		}
		polite := strings.Contains(p.Prompt, "please")
		return map[string]any{"content": map[bool]string{true: "polite", false: "rude"}[polite], "data": map[string]any{"pass": polite, "reason": "as asked"}}, nil
	}
	serve.Main(tea.Bundle{Name: "llm", Version: "1.0.0", Env: []string{"ASKED"}, Actions: []tea.Action{tea.NewAction("llm.call", "Asks.", ask)}})
}

func plugins(t testing.TB) string {
	t.Helper()
	binary, err := exec.LookPath("tea")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(binary)
}

func TestScripts(t *testing.T) {
	peertest.Long(t, "it runs programs")
	t.Parallel()
	dir := plugins(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("TEA_PLUGINS", dir)
			env.Setenv("ASKED", filepath.Join(env.WorkDir, "asked"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "asked": asked},
	})
}

// exits runs a command that must end with an exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// asked checks how often the model was asked: asked NUMBER
func asked(ts *testscript.TestScript, _ bool, args []string) {
	if got := strconv.Itoa(strings.Count(ts.ReadFile("asked"), "\n")); got != args[0] {
		ts.Fatalf("the model was asked %s times, want %s", got, args[0])
	}
}

// project is a directory with an evaluation of a workflow that asks the model.
type project struct {
	t   *testing.T
	dir string
}

func newProject(t *testing.T, eval string) *project {
	t.Helper()
	p := &project{t, t.TempDir()}
	p.write("flow.yaml", "nodes: [{name: ask, uses: llm.call, with: {prompt: '{{ state.text }}'}, output: {answer: '{{ result.content }}'}}]\n")
	p.write("eval.yaml", "workflow: flow.yaml\noutput: answer\ngraders: [{equal: }]\n"+eval)
	return p
}

func (p *project) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// asked returns how often the model was asked.
func (p *project) asked() int {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "asked"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

// start starts `tea eval eval.yaml`.
func (p *project) start(args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	p.t.Helper()
	cmd = exec.CommandContext(p.t.Context(), "tea", append([]string{"eval", "eval.yaml", "--plugins", plugins(p.t)}, args...)...)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.dir, stdout, stderr, 10*time.Second
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "XDG_CACHE_HOME="+filepath.Join(p.dir, "cache"), "XDG_STATE_HOME="+filepath.Join(p.dir, "state"), "ASKED="+filepath.Join(p.dir, "asked"))
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return cmd, stdout, stderr
}

// until waits until the model was asked n times.
func (p *project) until(n int) {
	p.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for p.asked() < n {
		select {
		case <-tick.C:
		case <-late:
			p.t.Fatalf("the model was asked %d times, want %d", p.asked(), n)
		}
	}
}

type report struct {
	Status   string
	Met      bool
	Variants []struct {
		Trials map[string]int
		Cached int
	}
	Trials []struct{ Case, Status string }
}

func (p *project) report(text *bytes.Buffer) (r report) {
	p.t.Helper()
	if err := json.Unmarshal(text.Bytes(), &r); err != nil {
		p.t.Fatalf("%v\n%s", err, text)
	}
	return r
}

// The third case hangs until the signal.
const hanging = `
parallel: 1
cases:
  - {id: a, input: {text: please}, expected: polite}
  - {id: b, input: {text: now}, expected: rude}
  - {id: c, input: {text: hang}, expected: polite}
  - {id: d, input: {text: please}, expected: polite}
`

func TestInterruptLeavesAPartialReport(t *testing.T) {
	peertest.Long(t, "it runs programs")
	t.Parallel()
	p := newProject(t, hanging)
	cmd, stdout, stderr := p.start("--json", "--html", "report.html")
	p.until(3)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	r := p.report(stdout)
	got := fmt.Sprintf("%s %v %v", r.Status, r.Met, r.Trials)
	if want := "interrupted false [{a passed} {b passed} {c interrupted} {d not run}]"; got != want {
		t.Errorf("report: %s, want %s", got, want)
	}
	page, err := os.ReadFile(filepath.Join(p.dir, "report.html"))
	if err != nil || !bytes.Contains(page, []byte("Interrupted: this report is partial.")) || !bytes.HasSuffix(page, []byte("</html>\n")) {
		t.Errorf("report.html: %v\n%s", err, page)
	}
	if !strings.Contains(stderr.String(), "interrupted: 2 of 4 runs are missing") {
		t.Errorf("stderr: %s", stderr)
	}
}

func TestKilledEvaluationContinuesFromTheCache(t *testing.T) {
	peertest.Long(t, "it runs programs")
	t.Parallel()
	p := newProject(t, hanging)
	cmd, _, _ := p.start()
	p.until(3)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	p.write("eval.yaml", "workflow: flow.yaml\noutput: answer\ngraders: [{equal: }]\n"+strings.Replace(hanging, "text: hang", "text: please do", 1))
	cmd, stdout, stderr := p.start("--json")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if r := p.report(stdout); !r.Met || r.Variants[0].Cached != 3 {
		t.Errorf("report: %+v", r)
	}
	// d has the input of a, whose result is kept.
	if n := p.asked(); n != 4 {
		t.Errorf("the model was asked %d times, want 4", n)
	}
}

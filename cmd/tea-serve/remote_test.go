package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// called is what a command has printed, and its exit code.
type called struct {
	code        int
	out, report string
}

// tea runs a command of tea. extra are environment variables.
func (p *project) tea(extra []string, args ...string) called {
	p.t.Helper()
	log := newLogs()
	cmd := p.command(log, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Env = append(cmd.Env, extra...)
	err := cmd.Run()
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return called{cmd.ProcessState.ExitCode(), out.String(), log.String()}
}

// varying are the parts of an output that differ between two runs.
var varying = regexp.MustCompile(`"run_id":"[^"]*"|"path":"/[^"]*"|"asked_at":"[^"]*"|"ts":"[^"]*"|"(duration_ms|elapsed_ms|file|workflow_file|digest)":("[^"]*"|[0-9.]+)`)

// A run of a server has the output, the events and the exit code of a local run.
func TestRemoteRunsAreLikeLocalOnes(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"done.yaml":   "state_schema: {n: int}\nnodes: [{name: a, run: 'return {m = state.n + 1}'}, {name: b, run: 'return {text = \"é\"}'}]\n",
		"fail.yaml":   "nodes: [{name: n, run: 'error(\"broken\")'}]\n",
		"ask.yaml":    "nodes: [{name: q, uses: human.ask, with: {question: \"Go on?\", choices: [\"yes\", \"no\"]}, output: {answer: \"{{ result.answer }}\"}}]\n",
		"budget.yaml": "budget: {steps: 1}\nnodes: [{name: a, run: 'return {a = 1}'}, {name: b, run: 'return {b = 1}'}]\n",
	}
	p := newProject(t, files)
	s := p.serve()
	for name, args := range map[string][]string{
		"done": {"-i", `{"n": 1}`}, "fail": nil, "ask": nil, "budget": nil,
	} {
		for _, flags := range [][]string{nil, {"--stream", "-q"}, {"-q", "--fail-on-state", "m=2"}} {
			args := append(append([]string{}, args...), flags...)
			local := p.tea(nil, append([]string{"run", filepath.Join(p.dir, name+".yaml")}, args...)...)
			remote := p.tea(nil, append([]string{"--host", s.url, "run", name}, args...)...)
			if local.code != remote.code {
				t.Errorf("%s %v: exit codes %d locally, %d on the server\n%s\n%s", name, args, local.code, remote.code, local.report, remote.report)
			}
			if l, r := varying.ReplaceAllString(local.out, ""), varying.ReplaceAllString(remote.out, ""); l != r {
				t.Errorf("%s %v: output\n%s\nof the server:\n%s", name, args, l, r)
			}
		}
	}
}

func TestRemoteResume(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	token := filepath.Join(p.home, "token")
	for path, text := range map[string]string{token: "0123456789abcdef0123\n", token + "s": "run 0123456789abcdef0123\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := p.serve("--token-file", token+"s")
	host := []string{"TEA_HOST=" + s.url}
	env := []string{host[0], "TEA_TOKEN_FILE=" + token}
	if c := p.tea(host, "run", "ask"); c.code != 2 || !strings.Contains(c.report, "--token-file") {
		t.Errorf("without a token: %+v", c)
	}
	c := p.tea(env, "run", "ask")
	m := regexp.MustCompile(`resume (\S+) --answer`).FindStringSubmatch(c.report)
	if c.code != 130 || m == nil {
		t.Fatalf("run: %+v", c)
	}
	if c := p.tea(env, "runs"); !strings.Contains(c.out, m[1]) || !strings.Contains(c.out, "waiting") {
		t.Errorf("runs: %+v", c)
	}
	if c := p.tea(env, "runs", "show", m[1]); !strings.Contains(c.out, "Go on?") || !strings.Contains(c.out, "resume with") {
		t.Errorf("runs show: %+v", c)
	}
	if c := p.tea(env, "runs", "workflows"); !strings.Contains(c.out, "ask") {
		t.Errorf("runs workflows: %+v", c)
	}
	if c := p.tea(env, "resume", m[1], "--answer", `q="maybe"`); c.code != 2 {
		t.Errorf("an answer that is not valid: %+v", c)
	}
	c = p.tea(env, "resume", m[1], "--answer", `q="yes"`, "--stream")
	if c.code != 0 || strings.Contains(c.out, `"seq":1,`) || !strings.Contains(c.out, `"state":{`) {
		t.Errorf("resume: %+v", c)
	}
	if c := p.tea(env, "fork", m[1], "--at", "first"); c.code != 130 {
		t.Errorf("fork: %+v", c)
	}
	if c := p.tea(env, "runs", "events", m[1]); c.code != 0 || !strings.Contains(c.out, "run_end") {
		t.Errorf("runs events: %+v", c)
	}
	if c := p.tea(env, "runs", "show", "gone"); c.code != 1 || !strings.Contains(c.report, "no such run") {
		t.Errorf("an unknown run: %+v", c)
	}
}

// A command that is interrupted stops its run, as a local one does.
func TestInterruptStopsTheRemoteRun(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("block.yaml", block(filepath.Join(p.home, "gate")))
	s := p.serve()
	log := newLogs()
	cmd := p.command(log, "--host", s.url, "run", "block", "--stream")
	out := newLogs()
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.await(t, `"begun"`)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 130 || !strings.Contains(log.String(), "resume with: ") {
		t.Errorf("%v: %s", err, log)
	}
	if r := s.request("GET", "/v1/runs?status=stopped", ""); !strings.Contains(r.text, `"stopped"`) {
		t.Errorf("runs: %s", r)
	}
}

// Commands that a server does not have are refused, and never run here instead.
func TestCommandsThatAServerDoesNotHave(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	for _, c := range []struct {
		env  []string
		args []string
		code int
		want string
	}{
		{nil, []string{"--host", "http://localhost:1", "validate", "x.yaml"}, 2, "`tea validate` does not run on a server"},
		{nil, []string{"--host", "http://localhost:1", "--token-file", "x", "runs"}, 2, "expected one of the commands run, resume, fork, runs before --token-file"},
		{nil, []string{"--host=http://localhost:1", "call", "json.parse"}, 2, "does not run on a server"},
		{nil, []string{"--host"}, 2, "expected the address"},
		{nil, []string{"--host", "http://localhost:1"}, 2, "expected one of the commands"},
		{nil, []string{"--host", "ftp://localhost", "runs"}, 2, "expected http://HOST:PORT"},
		{nil, []string{"--host", "http://me:secret@localhost:1", "runs"}, 2, "put the token into a file"},
		{nil, []string{"--host", "http://me:secret@localhost:1", "validate", "x.yaml"}, 2, "does not run on a server"},
		{nil, []string{"--host", "http://me:secret@localhost:1", "run", "x.yaml"}, 2, "x.yaml is a file"},
		{nil, []string{"--host", "http://localhost:1", "run", "x.yaml"}, 2, "x.yaml is a file"},
		{[]string{"TEA_HOST=http://localhost:1"}, []string{"checkpoint", "show", "x"}, 2, "TEA_HOST"},
		{[]string{"TEA_HOST=http://localhost:1"}, []string{"version"}, 0, ""},
		{nil, []string{"--host", "http://127.0.0.1:1", "runs"}, 1, "refused"},
	} {
		if got := p.tea(c.env, c.args...); got.code != c.code || !strings.Contains(got.report, c.want) || strings.Contains(got.report, "secret") {
			t.Errorf("%v: %+v, expected %d %q", c.args, got, c.code, c.want)
		}
	}
}

func TestRemoteRunAsksAtTheTerminal(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask, "twice.yaml": `
nodes:
  - {name: name, uses: human.ask, with: {question: "Name?"}, output: {name: "{{ result.answer }}"}}
  - {name: age, uses: human.ask, with: {question: "Age?", schema: {type: integer}}, output: {age: "{{ result.answer }}"}}
`})
	s := p.serve()
	run := func(input string, args ...string) called {
		log := newLogs()
		cmd := p.command(log, append([]string{"--host", s.url}, args...)...)
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout = strings.NewReader(input), &out
		_ = cmd.Run() // the code says it
		return called{cmd.ProcessState.ExitCode(), out.String(), log.String()}
	}
	if c := run("Ada\nold\n36\n", "run", "twice", "-I"); c.code != 0 || !strings.Contains(c.out, `"age": 36`) || !strings.Contains(c.out, `"name": "Ada"`) {
		t.Errorf("run: %+v", c)
	}
	c := run("Ada\n", "run", "twice", "-I")
	m := regexp.MustCompile(`resume (\S+) --answer`).FindStringSubmatch(c.report)
	if c.code != 130 || m == nil {
		t.Fatalf("end of the input: %+v", c)
	}
	if c := run("40\n", "resume", m[1], "-I"); c.code != 0 || !strings.Contains(c.out, `"age": 40`) {
		t.Errorf("resume: %+v", c)
	}
	if c := run("", "run", "ask", "-I", "-i", "-"); c.code != 2 {
		t.Errorf("-I and -i -: %+v", c)
	}
}

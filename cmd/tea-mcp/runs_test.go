package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const publish = `
name: publish
nodes:
  - {name: draft, run: 'return {text = "a draft"}'}
  - name: review
    uses: human.ask
    with:
      question: "Publish this: {{ state.text }}?"
      choices: ["yes", "no"]
    output: {verdict: "{{ result.answer }}"}
  - {name: send, run: 'return {sent = state.verdict == "yes"}'}
`

// answering returns options of a client that answers with these results, one
// after the other.
func answering(asked *[]string, results ...*mcp.ElicitResult) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		*asked = append(*asked, r.Params.Message)
		res := results[0]
		results = results[1:]
		return res, nil
	}}
}

func accept(fields map[string]any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: fields}
}

func TestInterruptIsElicitation(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			var asked []string
			c := newProject(t, map[string]string{"publish.yaml": publish}).start(answering(&asked, accept(map[string]any{"answer": "yes"})), version)
			out := c.call("publish", nil)
			if out.Status != "done" || out.State["sent"] != true {
				t.Errorf("result: %+v\n%s", out, c.log)
			}
			if diff := cmp.Diff([]string{"Publish this: a draft?"}, asked); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEachQuestionIsAsked(t *testing.T) {
	t.Parallel()
	const flow = `
nodes:
  - {name: age, uses: human.ask, with: {question: "Age?", schema: {type: integer, minimum: 18}}, output: {age: "{{ result.answer }}"}}
  - {name: who, uses: human.ask, with: {question: "Who?", schema: {type: object, properties: {name: {type: string}, vip: {type: boolean}}, required: [name]}}, output: {who: "{{ result.answer }}"}}
  - {name: level, uses: human.ask, with: {question: "Level?", choices: [1, 2, {x: 3}]}, output: {level: "{{ result.answer }}"}}
  - {name: word, uses: human.ask, with: {question: "Word?"}, output: {word: "{{ result.answer }}"}}
  - {name: last, interrupt: before}
`
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			var asked []string
			c := newProject(t, map[string]string{"flow.yaml": flow}).start(answering(&asked,
				accept(map[string]any{"answer": 21}), accept(map[string]any{"name": "Ada", "vip": true}),
				accept(map[string]any{"answer": `{"x":3}`}), accept(map[string]any{"answer": "tea"}), accept(map[string]any{}),
			), version)
			out := c.call("flow", nil)
			want := map[string]any{"age": 21.0, "who": map[string]any{"name": "Ada", "vip": true}, "level": map[string]any{"x": 3.0}, "word": "tea"}
			if diff := cmp.Diff(want, out.State); diff != "" || out.Status != "done" {
				t.Errorf("%s: state (-want +got):\n%s%s", out.text, diff, c.log)
			}
			if diff := cmp.Diff([]string{"Age?", "Who?", "Level?", "Word?", "The workflow flow stops before the node last. Continue?"}, asked); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswerThatDoesNotFitIsAskedAgain(t *testing.T) {
	t.Parallel()
	const flow = `nodes: [{name: q, uses: human.ask, with: {question: "Even?", schema: {type: integer, multipleOf: 2}}, output: {n: "{{ result.answer }}"}}]`
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			var asked []string
			c := newProject(t, map[string]string{"flow.yaml": flow}).start(answering(&asked, accept(map[string]any{"answer": 3}), accept(map[string]any{"answer": 4})), version)
			if out := c.call("flow", nil); out.State["n"] != 4.0 {
				t.Errorf("result: %+v\n%s", out, c.log)
			}
			if len(asked) != 2 || !strings.HasSuffix(asked[1], "Even?") || asked[1] == "Even?" {
				t.Errorf("questions: %q", asked)
			}
		})
	}
}

// A client that does not check what its user enters is asked again too. The client
// of the SDK checks it.
func TestAnswerThatDoesNotMatchTheFormIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, q := range []struct{ with, wrong, right, want string }{
		{"choices: [red, blue]", `{"answer": "green"}`, `{"answer": "blue"}`, `"n":"blue"}`},
		{"schema: {type: string, maxLength: 3}", `{"answer": "long"}`, `{"answer": "abc"}`, `"n":"abc"}`},
		{"schema: {type: integer}", `{"answer": "many"}`, `{"answer": 7}`, `"n":7}`},
		{"schema: {type: object, properties: {a: {type: integer}}, required: [a]}", `{"a": "x"}`, `{"a": 3}`, `"n":{"a":3}}`},
	} {
		t.Run(q.with, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{"flow.yaml": `nodes: [{name: q, uses: human.ask, with: {question: "Which?", ` + q.with + `}, output: {n: "{{ result.answer }}"}}]`})
			cmd := p.command(newLogs(), "mcp", p.dir)
			in, err1 := cmd.StdinPipe()
			out, err2 := cmd.StdoutPipe()
			if err := errors.Join(err1, err2, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Wait() }()
			defer in.Close()
			fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}}`)
			fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"flow"}}`)
			answers := []string{q.wrong, q.right}
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
					t.Fatal(err)
				}
				switch {
				case m.Method == "elicitation/create" && len(answers) > 0:
					fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":%s}}`+"\n", m.ID, answers[0])
					answers = answers[1:]
				case string(m.ID) == "2":
					if text := lines.Text(); len(answers) > 0 || !strings.Contains(text, q.want) {
						t.Errorf("%d answers are left, result %s", len(answers), text)
					}
					return
				}
			}
			t.Error("the server has ended")
		})
	}
}

func TestDeclinedQuestionLeavesTheRunWaiting(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			var asked []string
			c := newProject(t, map[string]string{"publish.yaml": publish}).start(answering(&asked, &mcp.ElicitResult{Action: "decline"}), version)
			out := c.call("publish", nil)
			if out.Status != "waiting" || !strings.Contains(out.Note, "decline") || !strings.Contains(out.Note, "resume") {
				t.Errorf("result: %+v\n%s", out, c.log)
			}
		})
	}
}

func TestDeclinedQuestionLosesNoOtherAnswer(t *testing.T) {
	t.Parallel()
	const flow = `
nodes:
  - {name: start}
  - {name: a, uses: human.ask, with: {question: "A?"}, output: {a: "{{ result.answer }}"}, goto: join}
  - {name: b, uses: human.ask, with: {question: "B?"}, output: {b: "{{ result.answer }}"}, goto: join}
  - {name: join, run: 'return {a = parallel_results[1].state.a, b = parallel_results[2].state.b}'}
edges: [{from: start, parallel: [a, b], fan_in: join}]
`
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			o := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if r.Params.Message == "A?" {
					return &mcp.ElicitResult{Action: "cancel"}, nil
				}
				return accept(map[string]any{"answer": "for b"}), nil
			}}
			c := newProject(t, map[string]string{"flow.yaml": flow}).start(o, version)
			out := c.call("flow", nil)
			if out.Status != "waiting" || len(out.Pending) != 1 || out.Pending[0]["path"] != "start/a/a" && out.Pending[0]["node"] != "a" || !strings.Contains(out.Note, "cancel") {
				t.Fatalf("result: %+v\n%s", out, c.log)
			}
			out = c.call("resume", map[string]any{"run_id": out.RunID, "answers": map[string]any{"a": "for a"}})
			if diff := cmp.Diff(map[string]any{"a": "for a", "b": "for b"}, out.State); diff != "" || out.Status != "done" {
				t.Errorf("%s: state (-want +got):\n%s", out.text, diff)
			}
		})
	}
}

func TestResumeToolAnswers(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := newProject(t, map[string]string{"publish.yaml": publish}).start(nil, version)
			out := c.call("publish", nil)
			if out.Status != "waiting" || len(out.Pending) != 1 || out.Pending[0]["question"] != "Publish this: a draft?" || out.isError {
				t.Fatalf("result: %+v", out)
			}
			for args, want := range map[string]string{
				`perhaps`: "answer review:ask", `other`: `no pending interrupt "other"; pending: review:ask`,
			} {
				name := "review:ask"
				if args == "other" {
					name = "other"
				}
				if got := c.call("resume", map[string]any{"run_id": out.RunID, "answers": map[string]any{name: args}}); !got.isError || !strings.Contains(got.text, want) {
					t.Errorf("answer %s: %+v", args, got)
				}
			}
			done := c.call("resume", map[string]any{"run_id": out.RunID, "answers": map[string]any{"review": "no"}})
			if done.Status != "done" || done.State["sent"] != false {
				t.Errorf("resumed: %+v", done)
			}
		})
	}
}

func TestArgumentsOfResumeAreChecked(t *testing.T) {
	t.Parallel()
	c := newProject(t, map[string]string{"publish.yaml": publish}).start(nil, "")
	for _, test := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"run_id": 5}, "run_id"},
		{map[string]any{}, "run_id"},
		{map[string]any{"run_id": "x", "answer": map[string]any{}}, "answer"},
		{map[string]any{"run_id": "x", "answers": "yes"}, "answers"},
		{map[string]any{"run_id": "x"}, `there is no run "x"`},
	} {
		if out := c.call("resume", test.args); !out.isError || !strings.Contains(out.text, test.want) {
			t.Errorf("resume %v: %+v, want %s", test.args, out, test.want)
		}
	}
}

func TestChangedWorkflowIsNotResumed(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"publish.yaml": publish})
	c := p.start(nil, "")
	waiting := c.call("publish", nil)
	p.write("publish.yaml", strings.ReplaceAll(publish, "a draft", "another draft"))
	out := c.call("resume", map[string]any{"run_id": waiting.RunID, "answers": map[string]any{"review": "yes"}})
	if !out.isError || !strings.Contains(out.text, "the workflow has changed") || !strings.Contains(out.text, waiting.RunID+" --migrate") {
		t.Errorf("resume: %+v", out)
	}
}

func TestResumeOfOtherRunsIsRefused(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"publish.yaml": publish})
	out := p.start(nil, "").call("publish", nil)
	other := newProject(t, map[string]string{"greet.yaml": greet})
	other.home = p.home
	c := other.start(nil, "")
	p.start(nil, "").call("publish", nil)
	for _, run := range []string{out.RunID, out.RunID[:4], "", "nothing", "..", "-c", strings.Repeat("long", 1000), filepath.Join(p.home, "tea", "runs", out.RunID+".tea")} {
		if got := c.call("resume", map[string]any{"run_id": run}); !got.isError || strings.Contains(got.text, "draft") || !strings.HasPrefix(got.text, "there is no run") {
			t.Errorf("resume %q: %+v", run, got)
		}
	}
	if list := c.read("tea://runs")["runs"].([]any); len(list) != 0 {
		t.Errorf("runs of another directory: %v", list)
	}
	if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "tea://runs/" + out.RunID}); err == nil {
		t.Error("the run of another directory can be read")
	}
}

// A URI that is not valid is refused, and the connection remains.
func TestResourcesThatDoNotExist(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		c := newProject(t, map[string]string{"greet.yaml": greet}).start(nil, version)
		for _, uri := range []string{
			"", "tea://", "tea://other", "tea://runs/..", "tea://runs/../../etc/passwd", "tea://runs/%2e%2e%2fsecret", "tea://runs/x\x00", "tea://runs/%00",
			"tea://runs/\a\x7f", "tea://runs/\u200b", "tea://runs/" + strings.Repeat("x", 10_000), "file:///etc/passwd", "tea://runs?after=nothing", "%",
		} {
			_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			var answer *jsonrpc.Error
			if !errors.As(err, &answer) || answer.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%.50q: %v", uri, err)
			}
		}
		if out := c.call("greet", map[string]any{"name": "Ada"}); out.State["greeting"] != "Hello Ada!" {
			t.Errorf("greet: %+v", out)
		}
	}
}

// slow waits in its second node.
const slow = `
name: slow
nodes:
  - {name: first, run: 'return {first = (state.first or 0) + 1}'}
  - {name: wait, uses: time.sleep, with: {seconds: "{{ state.seconds }}"}}
  - {name: last, run: 'return {finished = true}'}
`

// began is the progress message when slow is in its second node.
const began = "wait started"

// startSlow starts a server for slow, whose progress goes to the channel.
func (p *project) startSlow(version string) (*client, <-chan string) {
	p.t.Helper()
	progress := make(chan string, 100)
	return p.start(&mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		progress <- r.Params.Message
	}}, version), progress
}

// begin calls slow in the background and returns when it is in its second node.
func (c *client) begin(ctx context.Context, progress <-chan string) <-chan error {
	c.t.Helper()
	ended := make(chan error, 1)
	params := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 3600}}
	params.SetProgressToken("slow")
	go func() {
		_, err := c.CallTool(ctx, params)
		ended <- err
	}()
	for {
		select {
		case message := <-progress:
			if message == began {
				return ended
			}
		case err := <-ended:
			c.t.Fatalf("the call ended: %v\n%s", err, c.log)
		}
	}
}

// unfinished reads the only run, which is slow after its first node.
func (c *client) unfinished() string {
	c.t.Helper()
	for {
		list := c.read("tea://runs")["runs"].([]any)
		run := list[0].(map[string]any)
		if run["status"] == "stopped" && len(list) == 1 {
			return run["id"].(string)
		}
		if run["status"] != "running" {
			c.t.Fatalf("runs: %v", list)
		}
	}
}

func TestRunThatIsRunningIsNotResumed(t *testing.T) {
	t.Parallel()
	c, progress := newProject(t, map[string]string{"slow.yaml": slow}).startSlow("")
	ctx, cancel := context.WithCancel(t.Context())
	ended := c.begin(ctx, progress)
	list := c.read("tea://runs")["runs"].([]any)
	run := list[0].(map[string]any)
	if run["status"] != "running" {
		t.Errorf("run: %v", run)
	}
	out := c.call("resume", map[string]any{"run_id": run["id"], "input": map[string]any{"seconds": 0}})
	if !out.isError || !strings.Contains(out.text, "in use") {
		t.Errorf("resume: %+v", out)
	}
	cancel()
	<-ended
}

func TestCanceledCallStopsWithCheckpoint(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c, progress := newProject(t, map[string]string{"slow.yaml": slow}).startSlow(version)
			ctx, cancel := context.WithCancel(t.Context())
			ended := c.begin(ctx, progress)
			cancel()
			if err := <-ended; err == nil {
				t.Error("the call did not end with an error")
			}
			id := c.unfinished()
			c.log.await(t, "run "+id+" of slow stopped; resume it with `")
			out := c.call("resume", map[string]any{"run_id": id, "input": map[string]any{"seconds": 0}})
			if out.Status != "done" || out.State["first"] != 1.0 || out.State["finished"] != true {
				t.Errorf("resumed: %+v", out)
			}
		})
	}
}

func TestKilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"slow.yaml": slow})
	c, progress := p.startSlow("")
	ended := c.begin(t.Context(), progress)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	c = p.start(nil, "")
	out := c.call("resume", map[string]any{"run_id": c.unfinished(), "input": map[string]any{"seconds": 0}})
	if out.Status != "done" || out.State["first"] != 1.0 || out.State["finished"] != true {
		t.Errorf("resumed: %+v", out)
	}
}

func TestServerEndsWithItsClient(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"EOF", "SIGINT"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{"slow.yaml": slow})
			log := newLogs()
			cmd := p.command(log, "mcp", p.dir)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"seconds":3600},"_meta":{"progressToken":1}}}
`)
			lines := bufio.NewScanner(stdout)
			for lines.Scan() {
				if !strings.HasPrefix(lines.Text(), `{"jsonrpc":"2.0"`) {
					t.Errorf("stdout has a line that is not of the protocol: %s", lines.Text())
				}
				if !strings.Contains(lines.Text(), began) {
					continue
				}
				if how == "EOF" {
					_ = stdin.Close()
				} else if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Skip(err)
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("exit: %v\n%s", err, log)
			}
			out := p.start(nil, "")
			out.unfinished()
			log.await(t, "of slow stopped; resume it with `")
		})
	}
}

func TestRunsHavePages(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet, "loop.yaml": `
nodes:
  - {name: l, type: while_loop, condition: "state.n < 60", max_iterations: 100, body: [{name: b, run: "return {n = state.n + 1}"}]}
initial_state: {n: 0}
`})
	c := p.start(nil, "")
	for range 51 {
		c.call("greet", map[string]any{"name": "Ada"})
	}
	page := c.read("tea://runs")
	first := page["runs"].([]any)
	next, _ := page["next"].(string)
	if len(first) != 50 || next == "" {
		t.Fatalf("%d runs, next %q", len(first), next)
	}
	page = c.read(next)
	if rest := page["runs"].([]any); len(rest) != 1 || page["next"] != nil {
		t.Errorf("second page: %v", page)
	}
	out := c.call("loop", nil)
	run := c.read("tea://runs/" + out.RunID)
	if run["status"] != "done" || run["workflow"] != "loop" || run["state"].(map[string]any)["n"] != 60.0 {
		t.Errorf("run: %v", run)
	}
	seen := 0.0
	for run["next"] != nil {
		for _, e := range run["events"].([]any) {
			seq := e.(map[string]any)["seq"].(float64)
			if seq != seen+1 {
				t.Fatalf("event %v follows %v", seq, seen)
			}
			seen = seq
		}
		run = c.read(run["next"].(string))
	}
	events := run["events"].([]any)
	if last := events[len(events)-1].(map[string]any); seen < 100 || last["event"] != "run_end" {
		t.Errorf("last event: %v", last)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-is-secret"
	p := newProject(t, map[string]string{"leak.yaml": `
description: ${TOKEN}
settings: {leak: {token: "{{ secrets.TOKEN }}"}}
nodes:
  - name: n
    uses: json.stringify
    with: {data: {a: "{{ secrets.TOKEN }}"}}
    output: {text: "{{ result.text }}"}
  - {name: l, run: 'tea.log("warn", "it is " .. state.text); return {again = state.text}'}
  - {name: q, uses: human.ask, with: {question: "Is it {{ state.text }}?"}}
  - {name: e, run: 'error("failed with " .. state.text)'}
`})
	var mu []string
	o := &mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { mu = append(mu, fmt.Sprint(r.Params.Data)) }}
	c := p.start(o, "2025-11-25", "--secrets", `{"TOKEN": "`+secret+`"}`, "-v")
	if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
		t.Fatal(err)
	}
	waiting := c.call("leak", nil)
	details := fmt.Sprint(c.read("tea://runs/" + waiting.RunID))
	failed := c.call("resume", map[string]any{"run_id": waiting.RunID, "answers": map[string]any{"q": "x"}})
	after := fmt.Sprint(c.read("tea://runs/" + waiting.RunID))
	if waiting.Status != "waiting" || failed.Status != "failed" || !strings.Contains(failed.Error, "***") {
		t.Errorf("results: %+v, %+v", waiting, failed)
	}
	_ = c.Close()
	for _, text := range []string{waiting.text, details, failed.text, after, c.log.String(), strings.Join(mu, "\n")} {
		if strings.Contains(text, secret) || strings.Contains(text, "hunter2") {
			t.Errorf("the secret is in:\n%s", text)
		}
	}
}

func TestStateThatIsTooLargeIsNamed(t *testing.T) {
	t.Parallel()
	c := newProject(t, map[string]string{"big.yaml": `nodes: [{name: n, run: 'return {text = string.rep("x", 1100000)}'}]`}).start(nil, "")
	out := c.call("big", nil)
	if out.Status != "done" || out.State != nil || !strings.Contains(out.Note, "is not in this result") {
		t.Errorf("status %s, note %s", out.Status, out.Note)
	}
}

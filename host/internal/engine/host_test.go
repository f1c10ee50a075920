package engine

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/secret"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlow(t, `
nodes:
  - {name: s, uses: test.speak}
  - {name: skipped, if: "false"}
  - {name: f, uses: test.fail, with: {retryable: true}, retry: {max_retries: 1, backoff_base_ms: 1000, jitter: false}, on_error: continue}
  - {name: l, type: while_loop, condition: "(state.n or 0) < 1", max_iterations: 2, body: [{name: i, run: "return {n = 1}"}]}
  - {name: p, parallel: {max_concurrency: 1}}
  - {name: a, run: "tea.log('warn', 'careful') return {}"}
  - {name: q, uses: test.ask, with: {question: "Go on?"}, output: {}}
edges: [{from: l, to: p}, {from: p, parallel: [a, q]}]
`, fakeActions{"test.speak": func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
			req.Host.Token(ctx, "the password is sec")
			req.Host.Token(ctx, "ret-word, is it?")
			req.Host.Progress(ctx, 0.5, "half")
			req.Host.Log(ctx, slog.LevelInfo, "said secret-word", map[string]any{"n": 1})
			_, err := req.Host.(*callHost).SaveCheckpoint()
			return nil, err
		}})
		var log bytes.Buffer
		change := func(o *Options) {
			o.Secrets = secret.New(map[string]any{"word": "secret-word"}, nil)
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}
		f.run(change)
		wantLines(t, "events", f.events, `
run_start
node_start s
token s text=the password is 
token s text=***, is it?
log s message=half
log s message=said ***
checkpoint s
node_end s
node_end skipped skipped=true
node_start f
retry f attempt=1 wait_ms=1000 error=refused
node_error f attempts=2 error=refused
node_start l
loop l[0] iteration=0
node_start l[0]/i
node_end l[0]/i
node_end l
node_start p
node_end p
branch_start p>a branch=a
node_start p>a/a
log p>a/a message=careful
node_end p>a/a
branch_end p>a branch=a success=true
branch_start p>q branch=q
node_start p>q/q
interrupt p>q/q question=Go on?
checkpoint
run_end status=waiting`)
		if text := log.String(); !strings.Contains(text, "said ***") || strings.Contains(text, "secret-word") {
			t.Errorf("the log:\n%s", text)
		}
		f.events = nil
		f.run(change, func(o *Options) { o.Answers = map[string]any{"p>q/q:ask": "yes"} })
		wantLines(t, "events of the resume", f.events, `
run_start resumed=true
branch_start p>q branch=q
node_start p>q/q
node_end p>q/q
branch_end p>q branch=q success=true
run_end status=done`)
	})
}

// A call that is repeated streams what the failed attempt did not.
func TestARepeatedCallContinuesItsText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second []string
		want          string
	}{
		"the same":  {[]string{"one ", "two "}, []string{"one two three"}, "one two three"},
		"another":   {[]string{"one ", "two "}, []string{"one ", "four"}, "one two "},
		"shorter":   {[]string{"one two "}, []string{"one "}, "one two "},
		"cut short": {[]string{strings.Repeat("x", mostShown), "y"}, []string{strings.Repeat("x", mostShown), "z"}, strings.Repeat("x", mostShown) + "y"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attempt := 0
			f := newFlow(t, "nodes: [{name: a, uses: safe.speak}]", fakeActions{"safe.speak": func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
				attempt++
				tokens := c.first
				if attempt > 1 {
					tokens = c.second
				}
				for _, token := range tokens {
					req.Host.Token(ctx, token)
				}
				if attempt == 1 {
					return nil, crash{tea.Errorf(tea.PluginCrashed, "gone")}
				}
				return nil, nil
			}})
			text := ""
			res := f.run(func(o *Options) {
				o.Events = func(e flow.Event) { text += e.Text("text") }
			})
			if res.Status != flow.Done || text != c.want {
				t.Errorf("%v: %.60q (%d), want %.60q (%d)", res.Err, text, len(text), c.want, len(c.want))
			}
		})
	}
}

// What an action asks of its host.
func TestHostOfACall(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "initial_state: {x: 1}\nnodes: [{name: a, uses: test.all, output: {}}]", fakeActions{
		"test.all": func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
			h := req.Host.(*callHost)
			if info, err := h.Describe(ctx, "test.echo"); err != nil || info.Name != "test.echo" {
				t.Errorf("Describe: %v, %v", info, err)
			}
			if _, err := h.Describe(ctx, "test.gone"); tea.AsError(err).Type != tea.NotFound {
				t.Errorf("Describe: %v", err)
			}
			if _, found, err := h.Note(ctx, "k"); found || err != nil {
				t.Errorf("Note: %v, %v", found, err)
			}
			if err := h.SetNote(ctx, "k", map[string]any{"n": 1}); err != nil {
				t.Error(err)
			}
			if note, found, err := h.Note(ctx, "k"); !found || err != nil {
				t.Errorf("Note: %v, %v, %v", note, found, err)
			}
			if err := h.SetNote(ctx, "k", func() {}); tea.AsError(err).Type != tea.ValidationError {
				t.Errorf("SetNote: %v", err)
			}
			if v, ok := h.Secret("word"); !ok || v != "secret-word" {
				t.Errorf("Secret: %v, %v", v, ok)
			}
			if masked := h.Mask("a secret-word"); masked != "a ***" {
				t.Errorf("Mask: %v", masked)
			}
			if s := h.State(); s["x"] != int64(1) {
				t.Errorf("State: %v", s)
			}
			if h.LuaSteps() != 0 {
				t.Errorf("LuaSteps: %d", h.LuaSteps())
			}
			res, err := h.Invoke(ctx, "test.echo", map[string]any{"n": 2})
			if err != nil {
				return nil, err
			}
			if v, err := res.Result.Value(); err != nil || !cmp.Equal(v, any(map[string]any{"n": int64(2)})) {
				t.Errorf("Invoke: %v, %v", v, err)
			}
			if _, err := h.Invoke(ctx, "test.fail", nil); tea.AsError(err).Type != tea.ConnectionError {
				t.Errorf("Invoke: %v", err)
			}
			return nil, nil
		},
	})
	res := f.run(func(o *Options) { o.Secrets = secret.New(map[string]any{"word": "secret-word"}, nil) })
	if res.Status != flow.Done || res.Usage.ToolCalls != 2 {
		t.Errorf("%s: %v, %d tool calls", res.Status, res.Err, res.Usage.ToolCalls)
	}
	f = newFlow(t, "nodes: [{name: a, uses: test.save}]", fakeActions{"test.save": func(_ context.Context, req *tea.Request, _ map[string]any) (any, error) {
		return req.Host.(*callHost).SaveCheckpoint()
	}})
	wantFailure(t, f.run(func(o *Options) { o.Journal = nil }), tea.DependencyMissing, "keeps no checkpoint")
}

// A call with a key is made once, however often its node is run.
func TestCallsWithKeys(t *testing.T) {
	t.Parallel()
	crashes := 2
	f := newFlow(t, "initial_state: {x: 1}\nnodes: [{name: a, uses: test.plan, with: {task: '{{ x }}'}}]", fakeActions{
		"test.plan": func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
			var out []any
			for n, key := range []string{"one", "two", "three"} {
				if n == 3-crashes {
					crashes--
					return nil, tea.Errorf(tea.PluginCrashed, "gone")
				}
				res, err := req.Invoke(ctx, tea.Invocation{
					Action: "test.echo", Key: key, Params: map[string]any{"t": "{{ task.n }} {{ state.x }}", "l": []any{"{{ task.n }}", 1}},
					Roots: map[string]any{"task": map[string]any{"n": key}}, Output: map[string]any{"o": "{{ result.t }}", "n": "{{ task.n }}"},
				})
				if err != nil {
					return nil, err
				}
				v, err := res.Result.Value()
				if err != nil {
					return nil, err
				}
				out = append(out, v)
			}
			return map[string]any{"out": out}, nil
		},
	})
	for range 2 {
		wantFailure(t, f.run(), tea.PluginCrashed, "gone")
	}
	res := f.run()
	want := []any{}
	for _, key := range []string{"one", "two", "three"} {
		want = append(want, map[string]any{"o": key + " 1", "n": key})
	}
	if diff := cmp.Diff(any(want), res.State["out"]); diff != "" {
		t.Errorf("%v: %s", res.Err, diff)
	}
	echoes := 0
	for _, call := range f.calls {
		if strings.HasPrefix(call, "test.echo") {
			echoes++
		}
	}
	if echoes != 3 {
		t.Errorf("calls: %v", f.calls)
	}
}

// Templates that are data read only the names of the action and the state.
func TestTemplatesInCallsReadOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{ task }}": "", "{{ state.x }}": "", "plain": "",
		"{{ secrets.word }}": "reads \"secrets\"", "{{ env.HOME }}": "reads \"env\"", "{{ x }}": "reads \"x\"", "{{": "template", "{{ task / 0 }}": "",
	} {
		f := newFlow(t, "initial_state: {x: 1}\nnodes: [{name: a, uses: test.call}]", fakeActions{"test.call": func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
			return req.Invoke(ctx, tea.Invocation{Action: "test.echo", Params: map[string]any{"text": text}, Roots: map[string]any{"task": 1}})
		}})
		res := f.run()
		switch {
		case text == "{{ task / 0 }}":
			wantFailure(t, res, tea.ValidationError, "cannot calculate")
		case want != "":
			wantFailure(t, res, tea.ValidationError, want)
		case res.Status != flow.Done:
			t.Errorf("%s: %v", text, res.Err)
		}
	}
}

func TestWorkflowsThatRunThemselvesEnd(t *testing.T) {
	t.Parallel()
	const text = "nodes: [{name: a, uses: test.run, with: {path: flow.yaml}}]"
	f := newFlow(t, text, nil)
	res := f.run(func(o *Options) {
		o.LoadGraph = func(string, string) (*graph.Graph, error) { return f.graph, nil }
	})
	wantFailure(t, res, tea.ValidationError, "nested more than 64 deep")
	broken := tea.Errorf(tea.NotFound, "no such file")
	wantFailure(t, f.run(func(o *Options) {
		o.LoadGraph = func(string, string) (*graph.Graph, error) { return nil, broken }
	}), tea.NotFound, "no such file")
}

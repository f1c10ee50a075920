package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
)

// fakeAction is an action of a test; with are its parameters.
type fakeAction func(ctx context.Context, req *tea.Request, with map[string]any) (any, error)

// fakeActions implements [Actions].
type fakeActions map[string]fakeAction

func (a fakeActions) Names() []string { return slices.Sorted(maps.Keys(a)) }

func (a fakeActions) Describe(name string) (tea.ActionInfo, bool) {
	_, ok := a[name]
	return tea.ActionInfo{Name: name, Idempotent: strings.HasPrefix(name, "safe."), Once: strings.HasPrefix(name, "once."), Reads: strings.HasPrefix(name, "reads.")}, ok
}

func (a fakeActions) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	call, ok := a[req.Action]
	if !ok {
		return nil, tea.Errorf(tea.NotFound, "unknown action %q", req.Action)
	}
	if req.DryRun {
		return tea.Respond(map[string]any{"dry_run": true}), nil
	}
	params, err := req.Params.Shared()
	if err != nil {
		return nil, err
	}
	with, _ := params.(map[string]any)
	result, err := call(ctx, req, with)
	if err != nil {
		return nil, err
	}
	return tea.Respond(result), nil
}

// fakeJournal implements [Journal].
type fakeJournal struct {
	mu      sync.Mutex
	records []checkpoint.Record
	synced  int
	// full makes Append fail from that number of records on; 0 = never.
	full int
}

var errFull = errors.New("no space left")

func (j *fakeJournal) Append(records ...checkpoint.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range records {
		if j.full > 0 && len(j.records) >= j.full {
			return errFull
		}
		r.Seq = uint64(len(j.records) + 1)
		j.records = append(j.records, r)
	}
	return nil
}

func (j *fakeJournal) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.synced = len(j.records)
	return nil
}

func (j *fakeJournal) Path() string { return "runs/r.jsonl" }

// testFlow is a workflow whose runs share a journal, so that a second run resumes
// the first.
type testFlow struct {
	t       *testing.T
	graph   *graph.Graph
	actions fakeActions
	journal *fakeJournal
	events  []string
	// calls are the actions that were called, with the paths of their nodes.
	mu    sync.Mutex
	calls []string
}

// newFlow compiles flow.yaml, which can refer to other files by name. The actions
// test.echo, test.ask, test.fail and test.run are always there.
func newFlow(t *testing.T, text string, actions fakeActions, files ...string) *testFlow {
	t.Helper()
	f := &testFlow{t: t, journal: &fakeJournal{}}
	f.actions = fakeActions{
		"test.echo": func(_ context.Context, _ *tea.Request, with map[string]any) (any, error) { return with, nil },
		"test.fail": func(_ context.Context, _ *tea.Request, with map[string]any) (any, error) {
			failure := tea.Errorf(tea.ConnectionError, "refused")
			failure.Retryable, _ = with["retryable"].(bool)
			return nil, failure
		},
		"test.ask": func(ctx context.Context, req *tea.Request, with map[string]any) (any, error) {
			answer, timedOut, err := req.Host.(*callHost).Ask(ctx, Question{Text: with["question"].(string), Choices: []any{"yes", "no"}})
			return map[string]any{"answer": answer, "late": timedOut}, err
		},
		"test.run": func(ctx context.Context, req *tea.Request, with map[string]any) (any, error) {
			return req.Host.(*callHost).RunWorkflow(ctx, with["path"].(string), nil)
		},
	}
	maps.Copy(f.actions, actions)
	f.graph = f.compile("flow.yaml", append([]string{"flow.yaml", text}, files...))
	return f
}

// compile compiles one of some files, of which names and texts alternate.
func (f *testFlow) compile(name string, files []string) *graph.Graph {
	f.t.Helper()
	read := func(name string) ([]byte, error) {
		for i := 0; i < len(files); i += 2 {
			if files[i] == path.Base(name) {
				return []byte(files[i+1]), nil
			}
		}
		return nil, fmt.Errorf("no file %s", name)
	}
	wf, diags := spec.Load(name, spec.Options{ReadFile: read})
	if diags.HasErrors() {
		f.t.Fatal(diags)
	}
	lua := script.New(script.Options{})
	g, diags := graph.Compile(wf, graph.Env{Lua: lua, Actions: f.actions})
	if diags.HasErrors() {
		f.t.Fatal(diags)
	}
	return g
}

// options are the options of the next run, which resumes from the journal.
func (f *testFlow) options() Options {
	return Options{
		Graph: f.graph, Actions: f.actions, RunID: "r", Journal: f.journal, Replay: slices.Clone(f.journal.records),
		Events: func(e flow.Event) { f.events = append(f.events, eventLine(e)) },
		Middleware: func(ctx context.Context, req *tea.Request, next InvokeFunc) (*tea.Response, error) {
			f.mu.Lock()
			f.calls = append(f.calls, req.Action+" at "+req.Call.Node)
			f.mu.Unlock()
			return next(ctx, req)
		},
	}
}

// run runs the workflow to an end, an interrupt or a failure.
func (f *testFlow) run(change ...func(*Options)) *flow.Result {
	f.t.Helper()
	return f.runIn(f.t.Context(), change...)
}

func (f *testFlow) runIn(ctx context.Context, change ...func(*Options)) *flow.Result {
	f.t.Helper()
	o := f.options()
	for _, c := range change {
		c(&o)
	}
	res, err := Execute(ctx, o)
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// eventLine is an event without what differs from run to run.
func eventLine(e flow.Event) string {
	line := string(e.Type)
	if e.Path != "" {
		line += " " + e.Path
	}
	for _, key := range []string{"status", "resumed", "skipped", "attempt", "attempts", "wait_ms", "branch", "success", "iteration", "text", "message", "error", "question"} {
		if v := e.Field(key); v != nil {
			line += fmt.Sprintf(" %s=%v", key, v)
		}
	}
	return line
}

// wantLines compares lines, of which want has one in each line.
func wantLines(t *testing.T, what string, got []string, want string) {
	t.Helper()
	if text := strings.Join(got, "\n"); text != strings.TrimSpace(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", what, text, strings.TrimSpace(want))
	}
}

// wantFailure checks the error of a run by its type and a part of its text.
func wantFailure(t *testing.T, res *flow.Result, kind tea.ErrorType, text string) {
	t.Helper()
	if res.Status != flow.Failed || res.Err == nil || asFailure(res.Err).Type != kind || !strings.Contains(res.Err.Error(), text) {
		t.Errorf("%s: %v; want %s with %q", res.Status, res.Err, kind, text)
	}
}

package flowtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Outcome is the result of one test.
type Outcome struct {
	Test    *Test
	Elapsed time.Duration
	// Failures are the differences from what is expected; empty if the test
	// passed.
	Failures []Failure
}

// Failure is one difference, with its position in the file of tests.
type Failure struct {
	Pos     diag.Pos
	Message string
}

// NewHost returns a host with replaced actions. The test closes it.
type NewHost func(replace []tea.Action) (*host.Host, error)

// Run runs the tests of the suite in order and calls report with the outcome of
// each. Recordings are played back if made is nil. Otherwise made has the files that
// were made; the first test with a recording makes it, the others play it back.
func (s *Suite) Run(ctx context.Context, newHost NewHost, made map[string]bool, report func(Outcome)) error {
	for i := range s.Tests {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		started := time.Now()
		t := &s.Tests[i]
		r := &testRun{test: t, tape: tape{}, played: map[string]int{}}
		r.plays = t.Recording != nil && (made == nil || made[t.Recording.File])
		if t.Recording != nil && !r.plays {
			made[t.Recording.File] = true
		}
		failures := r.run(ctx, newHost)
		report(Outcome{Test: t, Elapsed: time.Since(started), Failures: failures})
	}
	return nil
}

func (t *Test) failf(format string, args ...any) []Failure {
	return []Failure{{t.Pos, fmt.Sprintf(format, args...)}}
}

// testRun is one run of a test.
type testRun struct {
	test *Test
	wf   *host.Workflow
	mask host.Mask
	// plays is true if the test has a recording that is not made now.
	plays bool

	mu      sync.Mutex
	tape    tape
	played  map[string]int // calls by key
	misses  []string
	visited []any
	writes  []any
}

func (r *testRun) run(ctx context.Context, newHost NewHost) []Failure {
	t := r.test
	if r.plays {
		var err error
		if r.tape, err = readTape(t.Recording.File); err != nil {
			return t.failf("%v", err)
		}
	}
	h, err := newHost(r.replacements())
	if err != nil {
		return t.failf("make the host: %v", err)
	}
	defer h.Close()
	if r.wf, err = h.Load(t.Workflow, host.LoadOptions{Overlays: t.Overlays}); err != nil {
		return t.failf("the workflow is invalid:\n%v", err)
	}
	defer r.wf.Close()
	if err := t.checkNames(h, r.wf); err != nil {
		return t.failf("%v", err)
	}
	if r.mask, err = r.wf.Mask(t.Secrets); err != nil {
		return t.failf("%v", err)
	}
	failures := r.runWorkflow(ctx)
	if t.Recording != nil && !r.plays {
		failures = r.saveRecording(failures)
	}
	for i := range failures {
		failures[i].Message = r.mask.Text(failures[i].Message)
	}
	return failures
}

// saveRecording writes the recording, unless the test has failed: it would replace a
// good one.
func (r *testRun) saveRecording(failures []Failure) []Failure {
	t := r.test
	if len(failures) > 0 {
		return append(failures, t.failf("the recording %s was not written, because the test failed", t.Recording.File)...)
	}
	if len(r.tape) == 0 {
		return t.failf("the recording %s was not written: the run makes no call of %s", t.Recording.File, strings.Join(t.Recording.Actions, ", "))
	}
	if err := r.tape.write(t.Recording.File); err != nil {
		return t.failf("write the recording: %v", err)
	}
	return nil
}

func (r *testRun) runWorkflow(ctx context.Context) []Failure {
	t := r.test
	// A run that waits for an answer must be stored.
	dir, err := os.MkdirTemp("", "tea-test-")
	if err != nil {
		return t.failf("make a directory for the run: %v", err)
	}
	defer os.RemoveAll(dir)
	o := host.RunOptions{
		Input: t.Input, Secrets: t.Secrets, CheckpointDir: dir, Durability: flow.DurabilityExit, Events: r.event, Middleware: r.middleware,
	}
	res, err := r.wf.Run(ctx, o)
	if err == nil && res.Status == flow.Waiting && len(t.Answers) > 0 {
		res, err = t.answer(ctx, r.wf, o, res)
	}
	var refused *tea.Error
	if errors.As(err, &refused) { // for example, input that does not fit
		res, err = &flow.Result{Status: flow.Failed, Err: refused}, nil
	}
	if len(r.misses) > 0 { // everything else can be a consequence
		return t.failf("%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(r.misses))), "\n"))
	}
	if err != nil {
		return t.failf("%v", err)
	}
	return r.check(res)
}

// answer resumes the run until the test has no more answers to its questions.
func (t *Test) answer(ctx context.Context, wf *host.Workflow, o host.RunOptions, res *flow.Result) (*flow.Result, error) {
	o.Input, o.Durability = nil, flow.DurabilityAsync
	for res.Status == flow.Waiting {
		o.Answers = map[string]any{}
		for _, i := range res.Pending {
			if v, ok := t.Answers[i.ID]; ok {
				o.Answers[i.ID] = v
			} else if v, ok := t.Answers[i.Node]; ok {
				o.Answers[i.ID] = v
			}
		}
		if len(o.Answers) == 0 {
			return res, nil
		}
		var err error
		if res, err = wf.Resume(ctx, res.RunID, o); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// checkNames checks the names of actions in the test. A name must exist in the host or in the workflow: after a typing
// error, the test would call the real action.
func (t *Test) checkNames(h *host.Host, wf *host.Workflow) error {
	entries, err := h.Actions()
	if err != nil {
		return err
	}
	var known []string
	for _, e := range entries {
		if known = append(known, e.Name); t.Recording != nil && !e.Reads && slices.Contains(t.Recording.Actions, e.Name) {
			return fmt.Errorf("recording: %s does not only read, so it is not recorded; replace it under actions", e.Name)
		}
	}
	var files strings.Builder
	for _, file := range wf.Files() {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files.Write(raw)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Actions)) {
		used := strings.Contains(name, ".") && strings.Contains(files.String(), name)
		if !used && !slices.Contains(known, name) {
			return fmt.Errorf("actions: %q is not an action and is not in the workflow, so it replaces nothing%s", name, diag.Ending(name, known))
		}
	}
	if t.Recording == nil {
		return nil
	}
	for _, name := range t.Recording.Actions {
		if !slices.ContainsFunc(known, (&Recording{Actions: []string{name}}).covers) && !strings.Contains(files.String(), name) {
			return fmt.Errorf("recording: %q is neither an action nor a namespace%s", name, diag.Ending(name, known))
		}
	}
	return nil
}

// replacements returns the actions that return the results of the test. Those that are
// played back are replaced, too, so that their plugin need not be installed; the
// middleware answers their calls.
func (r *testRun) replacements() []tea.Action {
	var actions []tea.Action
	for _, calls := range r.tape {
		name := calls[0]["action"].(string)
		if r.test.Recording.covers(name) {
			actions = append(actions, tea.Action{Name: name, Reads: true, Handle: func(context.Context, *tea.Request) (*tea.Response, error) {
				return nil, tea.Errorf(tea.ValidationError, "%s does not only read, but the recording has it", name)
			}})
		}
	}
	for name, results := range r.test.Actions {
		var mu sync.Mutex
		calls := 0
		actions = append(actions, tea.Action{Name: name, Handle: func(context.Context, *tea.Request) (*tea.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			result := results[min(calls, len(results)-1)]
			calls++
			if failure := asFailure(result); failure != nil {
				return nil, failure
			}
			return tea.Respond(value.Clone(result)), nil
		}})
	}
	return actions
}

// asFailure reads {error: {type, message, retryable, source, details}}.
func asFailure(result any) *tea.Error {
	object, ok := result.(map[string]any)
	if !ok || len(object) != 1 {
		return nil
	}
	fields, ok := object["error"].(map[string]any)
	if !ok {
		return nil
	}
	kind, _ := fields["type"].(string)
	if kind == "" {
		kind = string(tea.InternalError)
	}
	message, _ := fields["message"].(string)
	failure := tea.Errorf(tea.ErrorType(kind), "%s", message)
	if retryable, ok := fields["retryable"].(bool); ok {
		failure.Retryable = retryable
	}
	failure.Source, _ = fields["source"].(string)
	failure.Details, _ = fields["details"].(map[string]any)
	return failure
}

// event collects the nodes that ran, in the order in which they began. A node
// that waited for an answer begins again on resume.
func (r *testRun) event(e flow.Event) {
	if e.Type == flow.EventNodeStart && !slices.Contains(r.visited, any(e.Path)) {
		r.visited = append(r.visited, e.Path)
	}
}

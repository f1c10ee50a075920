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
// each.
func (s *Suite) Run(ctx context.Context, newHost NewHost, report func(Outcome)) error {
	for i := range s.Tests {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		started := time.Now()
		t := &s.Tests[i]
		failures := t.run(ctx, newHost)
		report(Outcome{Test: t, Elapsed: time.Since(started), Failures: failures})
	}
	return nil
}

func (t *Test) failf(format string, args ...any) []Failure {
	return []Failure{{t.Pos, fmt.Sprintf(format, args...)}}
}

func (t *Test) run(ctx context.Context, newHost NewHost) []Failure {
	h, err := newHost(t.replacements())
	if err != nil {
		return t.failf("make the host: %v", err)
	}
	defer h.Close()
	wf, err := h.Load(t.Workflow, host.LoadOptions{Overlays: t.Overlays})
	if err != nil {
		return t.failf("the workflow is invalid:\n%v", err)
	}
	defer wf.Close()
	if name, hint, err := t.unknownAction(h, wf); err != nil || name != "" {
		if err != nil {
			return t.failf("%v", err)
		}
		return t.failf("actions: %q is not an action and is not in the workflow, so it replaces nothing%s", name, hint)
	}
	mask, err := wf.Mask(t.Secrets)
	if err != nil {
		return t.failf("%v", err)
	}
	failures := t.runWorkflow(ctx, wf)
	for i := range failures {
		failures[i].Message = mask.Text(failures[i].Message)
	}
	return failures
}

func (t *Test) runWorkflow(ctx context.Context, wf *host.Workflow) []Failure {
	// A run that waits for an answer must be stored.
	dir, err := os.MkdirTemp("", "tea-test-")
	if err != nil {
		return t.failf("make a directory for the run: %v", err)
	}
	defer os.RemoveAll(dir)
	visits := &visited{}
	o := host.RunOptions{
		Input: t.Input, Secrets: t.Secrets, CheckpointDir: dir, Durability: flow.DurabilityExit, Events: visits.event,
	}
	res, err := wf.Run(ctx, o)
	if err == nil && res.Status == flow.Waiting && len(t.Answers) > 0 {
		res, err = t.answer(ctx, wf, o, res)
	}
	var refused *tea.Error
	if errors.As(err, &refused) { // for example, input that does not fit
		res, err = &flow.Result{Status: flow.Failed, Err: refused}, nil
	}
	if err != nil {
		return t.failf("%v", err)
	}
	return t.check(res, visits.names)
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

// unknownAction returns the name of a replaced action that exists neither in the host nor in the workflow, "" if there
// is none. Without this check, a typing error would let the test call the real action.
func (t *Test) unknownAction(h *host.Host, wf *host.Workflow) (name, hint string, err error) {
	entries, err := h.Actions()
	if err != nil {
		return "", "", err
	}
	var known []string
	for _, e := range entries {
		known = append(known, e.Name)
	}
	var files strings.Builder
	for _, file := range wf.Files() {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", "", err
		}
		files.Write(raw)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Actions)) {
		used := strings.Contains(name, ".") && strings.Contains(files.String(), name)
		if !used && !slices.Contains(known, name) {
			return name, diag.Ending(name, known), nil
		}
	}
	return "", "", nil
}

// replacements returns the actions that return the results of the test.
func (t *Test) replacements() []tea.Action {
	var actions []tea.Action
	for name, results := range t.Actions {
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

// asFailure reads {error: {type, message, retryable}}.
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
	return failure
}

// visited collects the nodes that ran, in the order in which they began. A node
// that waited for an answer begins again on resume.
type visited struct{ names []any }

func (v *visited) event(e flow.Event) {
	if e.Type == flow.EventNodeStart && !slices.Contains(v.names, any(e.Path)) {
		v.names = append(v.names, e.Path)
	}
}

package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// probe is an action that counts its calls.
type probe struct {
	mu   sync.Mutex
	keys map[string][]string // by run
}

type probeParams struct {
	Value    any    `json:"value,omitempty" doc:"the value to return"`
	Failures int    `json:"failures,omitempty" doc:"fails in so many attempts"`
	Type     string `json:"type,omitempty" doc:"type of the failure"`
}

type probeResult struct {
	Success bool `json:"success" doc:"always true"`
	Value   any  `json:"value" doc:"the value"`
}

func (p *probe) call(ctx context.Context, req *tea.Request, params probeParams) (probeResult, error) {
	p.mu.Lock()
	p.keys[req.RunID] = append(p.keys[req.RunID], req.Node+" "+req.IdempotencyKey)
	p.mu.Unlock()
	req.Host.Log(ctx, 0, "called", map[string]any{"value": params.Value})
	if req.Attempt <= params.Failures {
		e := tea.Errorf(tea.ErrorType(params.Type), "attempt %d fails", req.Attempt)
		e.Source = "probe"
		return probeResult{}, e
	}
	return probeResult{Success: true, Value: params.Value}, nil
}

// through calls the probe by another action.
func (p *probe) through(ctx context.Context, req *tea.Request, params probeParams) (probeResult, error) {
	if err := req.Host.SetNote(ctx, "seen", params.Value); err != nil {
		return probeResult{}, err
	}
	note, found, err := req.Host.Note(ctx, "seen")
	if err != nil || !found {
		return probeResult{}, fmt.Errorf("note: %v, %w", found, err)
	}
	seen, err := note.Value()
	if err != nil {
		return probeResult{}, err
	}
	if _, err := req.Host.Invoke(ctx, "probe.call", map[string]any{"value": seen}); err != nil {
		return probeResult{}, err
	}
	if err := req.Usage(ctx, tea.Usage{Tokens: 3}); err != nil {
		return probeResult{}, err
	}
	return probeResult{Success: true, Value: seen}, nil
}

// keyed calls the probe with JSON, as a plugin process does.
func (p *probe) keyed(ctx context.Context, req *tea.Request, params probeParams) (probeResult, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return probeResult{}, err
	}
	res, err := req.Invoke(ctx, tea.Invocation{Action: "probe.call", Params: tea.RawPayload(raw), Key: "inner", Roots: map[string]any{"seen": params.Value}, Output: tea.RawPayload([]byte(`{"value": "{{ result.value }}{{ seen }}"}`))})
	if err != nil {
		return probeResult{}, err
	}
	var result probeResult
	return result, res.Result.Decode(&result)
}

// large makes something that is larger than a value of Temporal.
func (p *probe) large(ctx context.Context, req *tea.Request, params probeParams) (probeResult, error) {
	text := strings.Repeat("x", 30_000)
	for range 100 {
		switch params.Value {
		case "log":
			req.Host.Log(ctx, 0, text, nil)
		case "tokens":
			req.Host.Token(ctx, text)
		}
	}
	var err error
	switch text = strings.Repeat(text, 100); params.Value {
	case "error":
		err = tea.Errorf(tea.ValidationError, "%s", text)
	case "inner":
		_, err = req.Host.Invoke(ctx, "probe.call", map[string]any{"value": text})
	case "note":
		err = req.Host.SetNote(ctx, "large", text)
	}
	return probeResult{Success: err == nil}, err
}

func (p *probe) bundle() *tea.Bundle {
	return &tea.Bundle{Name: "probe", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("probe.call", "Counts.", p.call), tea.NewAction("probe.through", "Counts by another action.", p.through),
		tea.NewAction("probe.large", "Makes something large.", p.large),
		tea.NewAction("probe.keyed", "Counts by another action, with a key and templates.", p.keyed),
	}}
}

// take returns what was called in a run, sorted, and forgets it.
func (p *probe) take(run string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := p.keys[run]
	delete(p.keys, run)
	sort.Strings(keys)
	return keys
}

func newHost(t testing.TB) (*host.Host, *probe) {
	t.Helper()
	p := &probe{keys: map[string][]string{}}
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{p.bundle()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, p
}

// trail is what a user sees of a run.
type trail struct {
	Statuses []flow.Status
	State    map[string]any
	Error    string
	Pending  [][]string
	Usage    flow.Usage
	Failures []flow.Failure
	// Events are the events of each branch, in order.
	Events map[string][]string
	Calls  []string
}

// see adds the events of a run.
func (tr *trail) see(e flow.Event) {
	if tr.Events == nil {
		tr.Events = map[string][]string{}
	}
	line := string(e.Type) + " " + e.Path
	for _, f := range e.Fields {
		switch f.Key {
		case "duration_ms", "wait_ms", "path", "asked_at", "deadline":
			continue
		}
		line += fmt.Sprintf(" %s=%v", f.Key, f.Value)
	}
	branch := e.Path[:strings.LastIndexByte(e.Path, '/')+1]
	if e.Type == flow.EventBranchStart || e.Type == flow.EventBranchEnd || strings.HasSuffix(e.Path, "]") {
		branch = e.Path + "/"
	}
	tr.Events[branch] = append(tr.Events[branch], line)
}

// end adds the result of a part of a run, and returns the answers to what waits.
func (tr *trail) end(t testing.TB, res *flow.Result, err error) (answers map[string]any) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	tr.Statuses = append(tr.Statuses, res.Status)
	tr.State, tr.Usage, tr.Failures = res.State, res.Usage, slices.Clone(res.Failures)
	sort.Slice(tr.Failures, func(i, j int) bool { return tr.Failures[i].Path < tr.Failures[j].Path })
	if res.Err != nil {
		tr.Error = res.Err.Error()
	}
	answers = map[string]any{}
	var ids []string
	for _, i := range res.Pending {
		ids = append(ids, i.ID)
		if answers[i.ID] = any(nil); i.Kind == flow.InterruptAsk {
			answers[i.ID] = "yes"
		}
	}
	tr.Pending = append(tr.Pending, ids)
	return answers
}

// local runs a workflow in this process to its end.
func local(t testing.TB, wf *host.Workflow, o host.RunOptions) (tr trail) {
	t.Helper()
	o.Events, o.CheckpointDir, o.Hold = tr.see, t.TempDir(), true
	res, err := wf.Run(t.Context(), o)
	for answers := tr.end(t, res, err); res.Status == flow.Waiting; answers = tr.end(t, res, err) {
		o.Answers, o.Input = answers, nil
		res, err = wf.Resume(t.Context(), o.RunID, o)
	}
	return tr
}

// remote runs a workflow on Temporal to its end, and replays its histories.
func (s *site) remote(t testing.TB, wf *host.Workflow, o host.RunOptions, handOver int) (tr trail) {
	t.Helper()
	o.Events = tr.see
	job := teacmd.Job{Workflow: wf, Options: o}
	e := Engine{handOver: handOver}
	res, err := e.Run(t.Context(), s.flags, job)
	first := ""
	if err == nil {
		about, describeErr := s.describe(t.Context(), o.RunID, "")
		if describeErr != nil {
			t.Fatal(describeErr)
		}
		first = about.GetWorkflowExecutionInfo().GetFirstRunId()
	}
	for answers := tr.end(t, res, err); res.Status == flow.Waiting; answers = tr.end(t, res, err) {
		job.Options.Answers, job.Options.Input = answers, nil
		res, err = e.Resume(t.Context(), s.flags, o.RunID, job)
	}
	for _, h := range s.histories(o.RunID, first) {
		s.replay(h)
	}
	return tr
}

// everyThird continues a run in a new execution after three actions.
const everyThird = 3

// compare runs a workflow here and on Temporal, with each of these hand-overs.
func (s *site) compare(t *testing.T, p *probe, wf *host.Workflow, o host.RunOptions, handOvers ...int) {
	t.Helper()
	for _, handOver := range handOvers {
		o.RunID = host.NewRunID() // on which the keys depend
		want := local(t, wf, o)
		want.Calls = p.take(o.RunID)
		got := s.remote(t, wf, o, handOver)
		got.Calls = p.take(o.RunID)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("a hand-over after %d actions: local and Temporal differ (-local +temporal):\n%s", handOver, diff)
		}
	}
}

// Who follows a run reads its last events from a replay.
func TestLogsAndInnerCallsAreThoseOfAReplay(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newSite(t, h, nil)
	s.compare(t, p, s.load(`
nodes:
  - {name: begin, uses: trace.start, with: {name: all}, output: {}}
  - {name: print, run: 'print("printed") return {}'}
  - {name: note, uses: trace.log, with: {message: added up, fields: {n: 1}}, output: {}}
  - {name: last, uses: probe.call, with: {value: 1}, output: last}
  - {name: keyed, uses: probe.keyed, with: {value: 2}, output: keyed}
`), host.RunOptions{}, 0, everyThird)
}

func TestGeneratedGraphsRunLikeLocalRuns(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newSite(t, h, nil)
	for seed := range uint64(graphs(t)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text := generate(seed)
			for name, content := range text {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			wf, err := h.Load(filepath.Join(dir, "flow.yaml"), host.LoadOptions{})
			if err != nil {
				t.Fatalf("%v\n%s", err, text["flow.yaml"])
			}
			defer wf.Close()
			s.compare(t, p, wf, host.RunOptions{Input: map[string]any{"seed": int64(seed)}}, variants(seed)...)
			if t.Failed() {
				t.Log(text["flow.yaml"])
			}
		})
	}
}

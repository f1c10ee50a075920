package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// device counts the effects of the actions once.write and plain.write. test.read
// returns the number.
type device struct {
	effects int
	// during is called in a write, before its effect if early is set.
	during func(context.Context) error
	early  bool
}

func (d *device) actions() fakeActions {
	write := func(ctx context.Context, _ *tea.Request, _ map[string]any) (any, error) {
		if d.during != nil && d.early {
			if err := d.during(ctx); err != nil {
				return nil, err
			}
		}
		d.effects++
		if d.during != nil && !d.early {
			if err := d.during(ctx); err != nil {
				return nil, err
			}
		}
		return map[string]any{"written": d.effects}, nil
	}
	agent := func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
		res, err := req.Host.Invoke(ctx, "once.write", nil)
		if err != nil {
			return nil, nil // as a model that is told of the error
		}
		return res.Result.Shared()
	}
	return fakeActions{"once.write": write, "plain.write": write, "test.agent": agent, "test.read": func(context.Context, *tea.Request, map[string]any) (any, error) {
		return map[string]any{"value": d.effects}, nil
	}}
}

// killed runs a flow whose process dies during a write: what is recorded then is what
// the next run finds.
func (f *testFlow) killed(d *device) {
	f.t.Helper()
	var disk fakeJournal
	d.during = func(context.Context) error {
		f.journal.mu.Lock()
		defer f.journal.mu.Unlock()
		disk.records = slices.Clone(f.journal.records[:f.journal.synced])
		return nil
	}
	f.run()
	d.during = nil
	f.journal = &fakeJournal{records: disk.records, synced: len(disk.records)}
}

func TestAnUnknownEffectIsNotRepeated(t *testing.T) {
	t.Parallel()
	const verify = "on_unknown: verify, verify: {uses: test.read, if: result.value > 0}"
	for name, c := range map[string]struct {
		node     string
		early    bool // the process died before the effect
		answer   any
		effects  int
		state    map[string]any // nil = unknown_outcome
		question bool
	}{
		"fails":                 {node: "uses: plain.write, effects: once", effects: 1},
		"as its manifest says":  {node: "uses: once.write", effects: 1},
		"from Lua":              {node: "run: \"return tea.action('once.write', {})\"", effects: 1},
		"from Lua, by the node": {node: "run: \"return tea.action('plain.write', {})\", effects: once", effects: 1},
		"caught by Lua":         {node: "run: \"pcall(tea.action, 'once.write', {}) return {}\"", effects: 1},
		"of an agent":           {node: "uses: test.agent", effects: 1},
		"of an agent, asked":    {node: "uses: test.agent, on_unknown: ask", answer: "repeat it", effects: 2, state: map[string]any{"written": int64(2)}},
		"in a map":              {node: "type: dynamic_parallel, items: [1], action: {uses: plain.write}, effects: once", effects: 1},
		"is repeated":           {node: "uses: plain.write, effects: once, on_unknown: repeat", effects: 2, state: map[string]any{"written": int64(2)}},
		"happened":              {node: "uses: once.write, " + verify, effects: 1, state: map[string]any{"value": int64(1)}},
		"did not happen":        {node: "uses: once.write, " + verify, early: true, effects: 1, state: map[string]any{"written": int64(1)}},
		"a person says yes":     {node: "uses: once.write, on_unknown: ask", answer: "it happened", effects: 1, state: map[string]any{}},
		"a person says no":      {node: "uses: once.write, on_unknown: ask", answer: "repeat it", effects: 2, state: map[string]any{"written": int64(2)}},
		"a person, from Lua":    {node: "run: \"return tea.action('once.write', {})\", on_unknown: ask", answer: "repeat it", effects: 2, state: map[string]any{"written": int64(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &device{early: c.early}
			f := newFlow(t, "nodes: [{name: a, "+c.node+"}]", d.actions())
			f.killed(d)
			if c.early {
				d.effects = 0 // that of the process that died
			}
			opened := slices.Clone(f.journal.records)
			res := f.run()
			if c.answer != nil {
				if res.Status != flow.Waiting || len(res.Pending) != 1 {
					t.Fatalf("%s, %v, pending %v", res.Status, res.Err, res.Pending)
				}
				id := res.Pending[0].ID
				res = f.run(func(o *Options) { o.Answers = map[string]any{id: c.answer} })
			}
			if d.effects != c.effects {
				t.Errorf("%d effects, want %d", d.effects, c.effects)
			}
			if c.state == nil {
				wantFailure(t, res, tea.UnknownOutcome, "it is unknown whether")
				f.journal = &fakeJournal{records: opened}
				if again := f.run(); d.effects != c.effects {
					t.Errorf("%d effects after another resume: %v", d.effects, again.Err)
				}
				return
			}
			if diff := cmp.Diff(c.state, res.State); res.Status != flow.Done || diff != "" {
				t.Errorf("%s, %v (-want +got):\n%s", res.Status, res.Err, diff)
			}
		})
	}
}

// on_unknown also decides after an error in a process that lives on.
func TestALostAnswerIsSettledAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node    string
		status  flow.Status
		effects int
		state   map[string]any
	}{
		"fail":   {"on_unknown: fail", flow.Failed, 1, nil},
		"ask":    {"on_unknown: ask", flow.Waiting, 1, nil},
		"verify": {"on_unknown: verify, verify: {uses: test.read, if: result.value == 1}", flow.Done, 1, map[string]any{"value": int64(1)}},
		"repeat": {"on_unknown: repeat", flow.Done, 2, map[string]any{"written": int64(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &device{}
			d.during = func(context.Context) error {
				if d.effects > 1 {
					return nil
				}
				return tea.Errorf(tea.Timeout, "no answer")
			}
			f := newFlow(t, "nodes: [{name: a, uses: once.write, "+c.node+"}]", d.actions())
			res := f.run()
			if res.Status != c.status || d.effects != c.effects || c.state != nil && !cmp.Equal(c.state, res.State) {
				t.Fatalf("%s, %v, %d effects, state %v", res.Status, res.Err, d.effects, res.State)
			}
			if c.status != flow.Waiting {
				return
			}
			id := res.Pending[0].ID
			if res = f.run(func(o *Options) { o.Answers = map[string]any{id: "it happened"} }); res.Status != flow.Done || d.effects != 1 {
				t.Errorf("answered: %s, %v, %d effects", res.Status, res.Err, d.effects)
			}
		})
	}
}

// The time of the node is over then, so the next run decides.
func TestATimeoutOfTheNodeIsSettledByAResume(t *testing.T) {
	t.Parallel()
	d := &device{}
	f := newFlow(t, "nodes: [{name: a, uses: once.write, timeout_seconds: 0.01, on_unknown: ask}]", d.actions())
	d.during = func(ctx context.Context) error {
		<-ctx.Done()
		return tea.Errorf(tea.Timeout, "no answer")
	}
	res := f.run()
	if res.Status != flow.Failed || !strings.Contains(res.Err.Error(), "; a resume decides with on_unknown: ask") {
		t.Fatalf("%s, %v", res.Status, res.Err)
	}
	if res = f.run(); res.Status != flow.Waiting || d.effects != 1 {
		t.Errorf("resumed: %s, %v, %d effects", res.Status, res.Err, d.effects)
	}
}

// A person who is asked sees what was called.
func TestTheQuestionHasTheParameters(t *testing.T) {
	t.Parallel()
	d := &device{during: func(context.Context) error { return tea.Errorf(tea.Timeout, "no answer") }}
	f := newFlow(t, "nodes: [{name: a, uses: once.write, with: {value: '{{ 3 + 4 }}', point: speed, long: '{{ \"x\" * 600 }}'}, on_unknown: ask}]", d.actions())
	res := f.run()
	if res.Status != flow.Waiting {
		t.Fatalf("%s, %v", res.Status, res.Err)
	}
	want := `Did once.write of node "a" happen? Its parameters are {"long":"(602 bytes)","point":"speed","value":7}. The outcome is unknown: no answer`
	if got := res.Pending[0].Question; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Each call of which nobody knows is another question, also if the first answer was to
// repeat it.
func TestARepeatedCallIsAskedForAgain(t *testing.T) {
	t.Parallel()
	d := &device{}
	f := newFlow(t, "nodes: [{name: a, uses: once.write, on_unknown: ask}]", d.actions())
	f.killed(d)
	first := f.run().Pending[0].ID
	d.during = func(context.Context) error { return tea.Errorf(tea.Timeout, "no answer") }
	res := f.run(func(o *Options) { o.Answers = map[string]any{first: "repeat it"} })
	wantFailure(t, res, tea.UnknownOutcome, "no answer")
	res = f.run()
	if res.Status != flow.Waiting || d.effects != 2 || res.Pending[0].ID == first {
		t.Errorf("%s, %v, %d effects, %v", res.Status, res.Err, d.effects, res.Pending)
	}
}

func TestRetriesOfEffects(t *testing.T) {
	t.Parallel()
	retryable := func(kind tea.ErrorType) *tea.Error {
		return &tea.Error{Type: kind, Message: "no", Retryable: true}
	}
	for name, c := range map[string]struct {
		err   *tea.Error
		calls int
		want  tea.ErrorType
	}{
		"a timeout":          {retryable(tea.Timeout), 1, tea.UnknownOutcome},
		"a lost answer":      {retryable(tea.ConnectionError), 1, tea.UnknownOutcome},
		"was not sent":       {retryable(tea.ConnectionError).NotSent(), 3, tea.ConnectionError},
		"was turned away":    {retryable(tea.RateLimited), 3, tea.RateLimited},
		"ended, and says so": {&tea.Error{Type: "command_failed", Message: "no", Details: map[string]any{"outcome_known": true}}, 1, "command_failed"},
		"was refused":        {tea.Errorf(tea.ValidationError, "no"), 1, tea.ValidationError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &device{early: true, during: func(context.Context) error { return c.err }}
			f := newFlow(t, "nodes: [{name: a, uses: once.write, retry: {max_retries: 2, backoff_base_ms: 1, jitter: false}}]", d.actions())
			wantFailure(t, f.run(), c.want, "no")
			if len(f.calls) != c.calls {
				t.Errorf("%d calls, want %d", len(f.calls), c.calls)
			}
		})
	}
}

// What has happened is not repeated when the code around it runs again.
func TestAnEffectIsNotRepeatedByARetryAroundIt(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"in Lua":       "nodes: [{name: a, run: \"local w = tea.action('once.write', {}) return tea.action('test.flaky', w)\", retry: {max_retries: 1, backoff_base_ms: 1}}]",
		"in a branch":  "nodes: [{name: s, parallel: {retry: {max_retries: 1, backoff_base_ms: 1}}}, {name: a, uses: once.write}, {name: b, uses: test.flaky, with: {written: '{{ state.written }}'}}, {name: c}]\nedges: [{from: s, parallel: [a, c]}, {from: a, to: b}]",
		"after a kill": "nodes: [{name: a, run: \"local w = tea.action('once.write', {}) return tea.action('test.flaky', w)\"}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &device{}
			actions, tries := d.actions(), 0
			actions["test.flaky"] = func(_ context.Context, _ *tea.Request, with map[string]any) (any, error) {
				if tries++; tries == 1 {
					return nil, &tea.Error{Type: tea.ConnectionError, Message: "refused", Retryable: true}
				}
				return map[string]any{"got": with["written"]}, nil
			}
			f := newFlow(t, text, actions)
			res := f.run()
			if res.Status == flow.Failed {
				res = f.run()
			}
			if res.Status != flow.Done || d.effects != 1 || tries != 2 {
				t.Errorf("%s, %v, %d effects, %d tries", res.Status, res.Err, d.effects, tries)
			}
		})
	}
}

// A dry run makes no call that may change something, also for actions that call others as
// agents and plans do, and none of a node whose effect must happen at most once.
func TestADryRunHasNoEffects(t *testing.T) {
	t.Parallel()
	const nodes = `nodes:
  - {name: write, uses: once.write, output: {}}
  - {name: read, uses: reads.agent, output: agent}
  - {name: plan, uses: reads.plan, output: plan}
  - {name: get, uses: reads.value, effects: once, output: {}}
  - {name: unmarked, run: "return {unmarked = tea.action('test.read', {a = 1}).dry_run}"}
`
	d := &device{}
	actions := d.actions()
	actions["reads.agent"] = actions["test.agent"]
	actions["reads.value"] = actions["once.write"]
	actions["reads.plan"] = func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
		res, err := req.Invoke(ctx, tea.Invocation{Action: "plain.write", Key: "one", Params: map[string]any{"v": "{{ n }}"}, Roots: map[string]any{"n": 7}})
		if err != nil {
			return nil, err
		}
		return res.Result.Shared()
	}
	f := newFlow(t, nodes, actions)
	var calls []any
	res := f.run(func(o *Options) {
		o.DryRun, o.Journal = true, nil
		o.Events = func(e flow.Event) {
			if e.Type == flow.EventDryRun {
				calls = append(calls, []any{e.Path, e.Field("call"), e.Field("params")})
			}
		}
	})
	if res.Status != flow.Done || d.effects != 0 {
		t.Fatalf("%s, %v, %d effects", res.Status, res.Err, d.effects)
	}
	dry := map[string]any{"dry_run": true}
	if diff := cmp.Diff(map[string]any{"agent": dry, "plan": dry, "unmarked": true}, res.State); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	none := map[string]any{}
	want := []any{
		[]any{"write", "once.write", none},
		[]any{"read", "once.write", nil},
		[]any{"plan", "plain.write", map[string]any{"v": int64(7)}},
		[]any{"get", "reads.value", none},
		[]any{"unmarked", "test.read", map[string]any{"a": int64(1)}},
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

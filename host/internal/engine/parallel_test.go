package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// backwards returns the action test.turn, whose call with the highest number ends
// first: call n waits until call n+1 has ended.
func backwards(n int) fakeActions {
	ended := make([]chan struct{}, n+2)
	for i := range ended {
		ended[i] = make(chan struct{})
	}
	close(ended[n+1])
	return fakeActions{"test.turn": func(ctx context.Context, _ *tea.Request, with map[string]any) (any, error) {
		turn := with["turn"].(int64)
		select {
		case <-ended[turn+1]:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer close(ended[turn])
		return map[string]any{"log": turn, "last": turn}, nil
	}}
}

// However branches end, their changes are merged in the order in which they are
// written.
func TestBranchesAreMergedInTheOrderWritten(t *testing.T) {
	t.Parallel()
	const schema = "state_schema: {log: {type: list, reducer: append, default: []}, last: int}\n"
	for name, c := range map[string]struct{ text, last string }{
		"a fan-out": {"nodes: [{name: s}, {name: a, uses: test.turn, with: {turn: 1}}, {name: b, uses: test.turn, with: {turn: 2}}, {name: c, uses: test.turn, with: {turn: 3}}]\n" +
			"edges: [{from: s, parallel: [a, b, c]}]", "3"},
		"a map": {"nodes: [{name: m, type: dynamic_parallel, items: [1, 2, 3], action: {uses: test.turn, with: {turn: '{{ item }}'}}}]", "3"},
		"a fan-in": {"nodes: [{name: s}, {name: a, uses: test.turn, with: {turn: 1}}, {name: b, uses: test.turn, with: {turn: 2}}, {name: c, uses: test.turn, with: {turn: 3}}, " +
			"{name: j, run: \"local out = {} for i, p in ipairs(parallel_results) do out[i] = p.state.last end return {log = table.concat(out, ','), last = #parallel_results}\"}]\n" +
			"edges: [{from: s, parallel: [a, b, c], fan_in: j}]", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlow(t, schema+c.text, backwards(3))
			res := f.run()
			want := []any{int64(1), int64(2), int64(3)}
			if name == "a fan-in" {
				want = []any{"1,2,3"}
			}
			if res.Status != flow.Done || !cmp.Equal(want, res.State["log"]) || fmt.Sprint(res.State["last"]) != c.last {
				t.Fatalf("%s: %v, %v", res.Status, res.State, res.Err)
			}
			f.samePlayedBack(res.State, func(*Options) {})
		})
	}
}

func TestBranchesThatFail(t *testing.T) {
	t.Parallel()
	const nodes = "nodes: [{name: s}, {name: good, run: 'return {v = 1}'}, {name: bad, uses: test.fail}, {name: worse, run: 'error(\"worse\")'}, "
	for name, c := range map[string]struct {
		text   string
		status flow.Status
		state  string // of key out
		err    string
		failed int
	}{
		"a join that reads results": {
			nodes + "{name: j, run: \"local out = '' for _, p in ipairs(parallel_results) do out = out .. tostring(p.success) .. ' ' .. tostring(p.error_type) .. ';' end return {out = out}\"}]\nedges: [{from: s, parallel: [good, bad, worse], fan_in: j}]",
			flow.Done, "true nil;false connection_error;false internal_error;", "", 2,
		},
		"a join that does not": {
			nodes + "{name: j, run: 'return {out = 1}'}]\nedges: [{from: s, parallel: [good, worse, bad], fan_in: j}]",
			flow.Failed, "<nil>", "worse", 2,
		},
		"no join": {nodes + "{name: x, goto: END}]\nedges: [{from: s, parallel: [good, bad]}]", flow.Failed, "<nil>", "refused", 1},
		"items": {
			"nodes: [{name: m, type: dynamic_parallel, items: [1, 2], action: {uses: test.fail}, fan_in: j}, {name: j, run: 'return {out = #parallel_results}'}]",
			flow.Done, "2", "", 2,
		},
		"items without a join": {"nodes: [{name: m, type: dynamic_parallel, items: [1, 2], action: {uses: test.fail}}]", flow.Failed, "<nil>", "refused", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlow(t, c.text, nil)
			res := f.run()
			if res.Status != c.status || fmt.Sprint(res.State["out"]) != c.state || res.FailedBranches != c.failed || (res.Err != nil) != (c.err != "") {
				t.Fatalf("%s: %v, %v, %d branches failed", res.Status, res.State, res.Err, res.FailedBranches)
			}
			if c.err != "" && !strings.Contains(res.Err.Error(), c.err) {
				t.Errorf("got %v", res.Err)
			}
			if c.status == flow.Done {
				f.samePlayedBack(res.State, func(*Options) {})
			}
		})
	}
}

// A retry runs the failed branch, and not those that succeeded.
func TestRetryFailedRunsFailedBranchesAgain(t *testing.T) {
	t.Parallel()
	var works atomic.Bool
	f := newFlow(t, "nodes: [{name: m, type: dynamic_parallel, items: [1, 2, 3], action: {uses: test.odd, with: {n: '{{ item }}'}}, fan_in: j}, {name: j, run: \"local n = 0 for _, p in ipairs(parallel_results) do if p.success then n = n + 1 end end return {good = n}\"}]",
		fakeActions{"test.odd": func(_ context.Context, _ *tea.Request, with map[string]any) (any, error) {
			if with["n"] == int64(2) && !works.Load() {
				return nil, tea.Errorf(tea.ConnectionError, "refused")
			}
			return with["n"], nil
		}})
	if res := f.run(); res.State["good"] != int64(2) || res.FailedBranches != 1 {
		t.Fatalf("%v, %v", res.State, res.Err)
	}
	works.Store(true)
	f.calls = nil
	again := func(o *Options) { o.RetryFailed = true }
	if res := f.run(again); res.Status != flow.Done || res.State["good"] != int64(3) {
		t.Errorf("%s: %v, %v", res.Status, res.State, res.Err)
	}
	wantLines(t, "calls", f.calls, "test.odd at m[1]")
	o := f.options()
	again(&o)
	if _, err := Execute(t.Context(), o); !errors.Is(err, ErrNothingFailed) {
		t.Errorf("got %v", err)
	}
}

func TestMaxConcurrencyBoundsTheBranches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		f := newFlow(t, "nodes: [{name: m, type: dynamic_parallel, items: '{{ range(20) | list }}', max_concurrency: 3, action: {uses: test.slow}}]",
			fakeActions{"test.slow": func(context.Context, *tea.Request, map[string]any) (any, error) {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				<-time.After(time.Second)
				now.Add(-1)
				return n, nil
			}})
		began := time.Now()
		if res := f.run(); res.Status != flow.Done || most.Load() != 3 || time.Since(began) != 7*time.Second {
			t.Errorf("%s: %v; %d at once, %v", res.Status, res.Err, most.Load(), time.Since(began))
		}
	})
}

// With fail_fast the first failure ends the branches that run.
func TestFailFastEndsTheOtherBranches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var canceled atomic.Bool
		f := newFlow(t, "nodes: [{name: s, parallel: {fail_fast: true}}, {name: slow, uses: test.slow}, {name: bad, uses: test.fail}, {name: j}]\nedges: [{from: s, parallel: [slow, bad], fan_in: j}]",
			fakeActions{"test.slow": func(ctx context.Context, _ *tea.Request, _ map[string]any) (any, error) {
				select {
				case <-ctx.Done():
					canceled.Store(true)
					return nil, ctx.Err()
				case <-time.After(time.Hour):
					return nil, nil
				}
			}})
		wantFailure(t, f.run(), tea.ConnectionError, "refused")
		if !canceled.Load() {
			t.Error("the slow branch was not ended")
		}
	})
}

func TestBranchesWithTimeoutsRetriesAndBreakers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		var callbacks []string
		f := newFlow(t, `
nodes:
  - name: s
    parallel: {timeout_seconds: 10, retry: {max_retries: 2, base_delay: 1}, circuit_breaker: {failure_threshold: 1, reset_timeout: 3600}}
  - {name: flaky, uses: test.flaky}
  - {name: slow, uses: test.slow}
  - {name: j, run: "local out = {} for i, p in ipairs(parallel_results) do out[i] = p.branch .. ' ' .. tostring(p.success) .. ' ' .. tostring(p.timeout) .. ' ' .. p.retry_count .. ' ' .. tostring(p.error_type) .. ' ' .. p.circuit_state end return {out = table.concat(out, '; '), round = (state.round or 0) + 1}", goto: [{if: "state.round < 2", to: s}, {to: END}]}
edges: [{from: s, parallel: [flaky, slow], fan_in: j}]
`, fakeActions{
			"test.flaky": func(context.Context, *tea.Request, map[string]any) (any, error) {
				if tries++; tries%2 == 1 {
					return nil, &tea.Error{Type: tea.ConnectionError, Message: "refused", Retryable: true}
				}
				return nil, nil
			},
			"test.slow": func(ctx context.Context, _ *tea.Request, _ map[string]any) (any, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		note := func(what, path string) { callbacks = append(callbacks, what+" "+path) }
		res := f.run(func(o *Options) {
			o.Callbacks = flow.Callbacks{
				BranchRetry: func(path string, attempt int, wait time.Duration, err error) {
					note(fmt.Sprintf("retry %d", attempt), path)
				},
				BranchTimeout: func(path string, d time.Duration) { note("timeout", path) },
				BreakerChange: func(branch, from, to string) { note(from+" to "+to, branch) },
			}
		})
		const want = "flaky true false 1 nil closed; slow false false 0 circuit_open open"
		if res.Status != flow.Done || res.State["out"] != want {
			t.Fatalf("%s: %v, %v", res.Status, res.State, res.Err)
		}
		slices.Sort(callbacks)
		if text := strings.Join(callbacks, "\n"); !strings.Contains(text, "closed to open slow") || strings.Count(text, "timeout s>slow") != 3 || strings.Count(text, "retry 1 s>flaky") != 1 {
			t.Errorf("callbacks:\n%s", text)
		}
	})
}

func TestItemsOfAMapInEvents(t *testing.T) {
	t.Parallel()
	for label, item := range map[string]any{
		"x": "x", "3": int64(3), "true": true, "<nil>": strings.Repeat("x", longestLabel+1),
		"n": map[string]any{"name": "n", "id": "i"}, "i": map[string]any{"name": map[string]any{"name": "deep"}, "id": "i"},
	} {
		if got := fmt.Sprint(itemLabel(item)); got != label {
			t.Errorf("%v: %s, want %s", item, got, label)
		}
	}
}

package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// crash is the error of an action whose plugin died.
type crash struct{ error }

func (crash) Crashed()        {}
func (c crash) Unwrap() error { return c.error }

// failing returns the actions test.flaky and safe.flaky, which fail so many times.
func failing(times int, err error) fakeActions {
	tries := 0
	flaky := func(_ context.Context, req *tea.Request, _ map[string]any) (any, error) {
		if tries++; tries <= times {
			return nil, err
		}
		return map[string]any{"attempt": req.Call.Attempt}, nil
	}
	return fakeActions{"test.flaky": flaky, "safe.flaky": flaky}
}

func TestRetriesOfNodes(t *testing.T) {
	t.Parallel()
	retryable := &tea.Error{Type: tea.ConnectionError, Message: "refused", Retryable: true}
	limited := &tea.Error{Type: tea.RateLimited, Message: "slow down", Retryable: true, RetryAfter: 20 * time.Second}
	died := crash{tea.Errorf(tea.PluginCrashed, "gone")}
	for name, c := range map[string]struct {
		node  string
		times int
		err   error
		calls int
		took  time.Duration
		want  tea.ErrorType // "" = success
	}{
		"succeeds at last":                    {"uses: test.flaky, retry: {max_retries: 3, backoff_base_ms: 1000, jitter: false}", 2, retryable, 3, 3 * time.Second, ""},
		"gives up":                            {"uses: test.flaky, retry: {max_retries: 1, backoff_base_ms: 1000, jitter: false}", 9, retryable, 2, time.Second, tea.ConnectionError},
		"not retryable":                       {"uses: test.flaky, retry: {max_retries: 3}", 9, tea.Errorf(tea.ValidationError, "bad"), 1, 0, tea.ValidationError},
		"by type":                             {"uses: test.flaky, retry: {max_retries: 3, backoff_base_ms: 1000, jitter: false, retry_on: [validation_error]}", 1, tea.Errorf(tea.ValidationError, "bad"), 2, time.Second, ""},
		"of another type":                     {"uses: test.flaky, retry: {max_retries: 3, retry_on: [validation_error]}", 9, retryable, 1, 0, tea.ConnectionError},
		"waits as asked":                      {"uses: test.flaky, retry: {max_retries: 3, backoff_base_ms: 1000, jitter: false}", 1, limited, 2, 20 * time.Second, ""},
		"asked for too long":                  {"uses: test.flaky, retry: {max_retries: 3, retry_after_max_seconds: 10}", 9, limited, 1, 0, tea.RateLimited},
		"in all too long":                     {"uses: test.flaky, retry: {max_retries: 9, backoff_base_ms: 4000, jitter: false, timeout_seconds: 10}", 9, retryable, 2, 10 * time.Second, tea.Timeout},
		"a crash":                             {"uses: safe.flaky", 1, died, 2, 0, ""},
		"two crashes":                         {"uses: safe.flaky", 2, died, 2, 0, tea.PluginCrashed},
		"a crash that may have had an effect": {"uses: test.flaky", 1, died, 1, 0, tea.PluginCrashed},
		"a crash and a policy":                {"uses: safe.flaky, retry: {max_retries: 1, backoff_base_ms: 1000, jitter: false, retry_on: [plugin_crashed]}", 1, died, 2, time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFlow(t, "nodes: [{name: a, "+c.node+"}]", failing(c.times, c.err))
				began := time.Now()
				res := f.run()
				if took := time.Since(began); took != c.took || len(f.calls) != c.calls {
					t.Errorf("%d calls in %v, want %d in %v", len(f.calls), took, c.calls, c.took)
				}
				if c.want == "" && res.Status != flow.Done {
					t.Errorf("%s: %v", res.Status, res.Err)
				} else if c.want != "" {
					wantFailure(t, res, c.want, "")
				}
			})
		})
	}
}

// Each attempt has the same idempotency key and its own number.
func TestAttemptsShareTheirIdempotencyKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys := map[string][]int{}
		f := newFlow(t, "nodes: [{name: a, uses: test.keys, retry: {max_retries: 2}}, {name: b, uses: test.keys, retry: {max_retries: 2}}]",
			fakeActions{"test.keys": func(_ context.Context, req *tea.Request, _ map[string]any) (any, error) {
				keys[req.Call.IdempotencyKey] = append(keys[req.Call.IdempotencyKey], req.Call.Attempt)
				if req.Call.Attempt < 3 {
					return nil, &tea.Error{Type: tea.ConnectionError, Retryable: true}
				}
				return nil, nil
			}})
		if res := f.run(); res.Status != flow.Done || len(keys) != 2 {
			t.Fatalf("%v, keys %v", res.Err, keys)
		}
		for key, attempts := range keys {
			if fmt.Sprint(attempts) != "[1 2 3]" {
				t.Errorf("%s: %v", key, attempts)
			}
		}
	})
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
		took       time.Duration
	}{
		"of a node":     {"nodes: [{name: a, uses: test.slow, timeout_seconds: 5}]", `node "a" took longer than timeout_seconds (5s)`, 5 * time.Second},
		"of the run":    {"config: {timeout_seconds: 7}\nnodes: [{name: a, uses: test.slow}]", "config.timeout_seconds (7s)", 7 * time.Second},
		"of a subgraph": {"nodes: [{name: a, subgraph: sub.yaml}]", "took longer than its config.timeout_seconds (3s)", 3 * time.Second},
		"each attempt":  {"nodes: [{name: a, uses: test.slow, timeout_seconds: 5, retry: {max_retries: 1, backoff_base_ms: 1000, jitter: false}}]", "timeout_seconds (5s)", 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFlow(t, c.text, fakeActions{"test.slow": func(ctx context.Context, _ *tea.Request, _ map[string]any) (any, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}}, "sub.yaml", "config: {timeout_seconds: 3}\nnodes: [{name: x, uses: test.slow}]")
				began := time.Now()
				res := f.run()
				wantFailure(t, res, tea.Timeout, c.want)
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// A branch that is not tried again fails with the reason for that, not only with the error of
// its last attempt.
func TestEndOfTheRetriesOfABranchIsReported(t *testing.T) {
	t.Parallel()
	retryable := &tea.Error{Type: tea.ConnectionError, Message: "refused", Retryable: true}
	limited := &tea.Error{Type: tea.RateLimited, Message: "slow down", Retryable: true, RetryAfter: 20 * time.Second}
	for name, c := range map[string]struct {
		retry string
		err   error
		calls int
		want  tea.ErrorType
		text  string
	}{
		"in all too long":    {"max_retries: 9, backoff_base_ms: 4000, jitter: false, timeout_seconds: 10", retryable, 2, tea.Timeout, "together took longer than retry.timeout_seconds (10s); the last one failed: connection_error: refused"},
		"asked for too long": {"max_retries: 3, retry_after_max_seconds: 10", limited, 1, tea.RateLimited, "slow down; not retried"},
		"gives up":           {"max_retries: 1, backoff_base_ms: 1000", retryable, 2, tea.ConnectionError, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFlow(t, "config: {parallel: {retry: {"+c.retry+"}}}\nnodes: [{name: s}, {name: a, uses: test.flaky}, {name: j}]\nedges: [{from: s, parallel: [a], fan_in: j}]", failing(9, c.err))
				res := f.run()
				wantFailure(t, res, c.want, c.text)
				if len(f.calls) != c.calls {
					t.Errorf("%d calls, want %d", len(f.calls), c.calls)
				}
			})
		})
	}
}

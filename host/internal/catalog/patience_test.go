package catalog

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// invoked is a function that is an invoker.
type invoked func(ctx context.Context, req *tea.Request) (*tea.Response, error)

func (f invoked) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	return f(ctx, req)
}
func (invoked) Close() error { return nil }

// until waits, or ends with ctx.
func until(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return tea.AsError(ctx.Err())
	}
}

func TestCallOfAPluginWithoutADeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		deadline time.Duration
		work     func(ctx context.Context, req *tea.Request) error
		took     time.Duration
		want     tea.ErrorType
	}{
		{"silent", 0, func(ctx context.Context, _ *tea.Request) error { return until(ctx, time.Hour) }, time.Minute, tea.Timeout},
		{"just in time", 0, func(ctx context.Context, _ *tea.Request) error { return until(ctx, 59*time.Second) }, 59 * time.Second, ""},
		{"streaming", 0, func(ctx context.Context, req *tea.Request) error {
			for range 5 {
				if err := until(ctx, 50*time.Second); err != nil {
					return err
				}
				req.Host.Token(ctx, "x")
			}
			return nil
		}, 250 * time.Second, ""},
		{"streaming without an end", 0, func(ctx context.Context, req *tea.Request) error {
			for {
				if err := until(ctx, 50*time.Second); err != nil {
					return err
				}
				req.Host.Progress(ctx, 0.5, "on and on")
			}
		}, 12 * time.Minute, tea.Timeout},
		{"waiting for another action", 0, func(ctx context.Context, req *tea.Request) error {
			_, err := req.Host.Invoke(ctx, "slow.action", nil)
			return err
		}, 5 * time.Minute, ""},
		{"with its own deadline", 20 * time.Minute, func(ctx context.Context, _ *tea.Request) error { return until(ctx, time.Hour) }, 20 * time.Minute, tea.Timeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				catalog := New(nil)
				catalog.MaxSilence = func(string) time.Duration { return time.Minute }
				m := tea.Manifest{Name: "slow", Version: "1.0.0", Actions: []tea.ActionInfo{{Name: "slow.work"}}}
				err := catalog.Add("plugin", m, func(context.Context, map[string]any) (Invoker, error) {
					return invoked(func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
						return tea.Respond(nil), c.work(ctx, req)
					}), nil
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				host := &teatest.Host{Actions: map[string]func(ctx context.Context, params any) (any, error){
					"slow.action": func(ctx context.Context, _ any) (any, error) { return nil, until(ctx, 5*time.Minute) },
				}}
				began := time.Now()
				_, err = catalog.Invoke(ctx, &tea.Request{Action: "slow.work", Host: host})
				if took := time.Since(began); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				if got := tea.AsError(err); (got == nil) != (c.want == "") || got != nil && got.Type != c.want {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		})
	}
}

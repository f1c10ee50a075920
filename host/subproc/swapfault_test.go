package subproc

import (
	"context"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// misdeeds are calls with which a version ends its process, or does not answer
// as it should. An empty type is a call without an error.
var misdeeds = map[string]struct {
	params map[string]any
	within time.Duration // the deadline; 0 = none
	want   tea.ErrorType
}{
	"exit":     {want: tea.PluginCrashed},
	"kill":     {want: tea.PluginCrashed},
	"panic":    {want: tea.PluginCrashed},
	"nil":      {want: tea.PluginCrashed},
	"goexit":   {want: tea.PluginCrashed},
	"oops":     {want: tea.InternalError},
	"stop":     {want: tea.PluginCrashed},
	"eat":      {want: tea.ResourceExhausted, params: map[string]any{"bytes": int64(4) << 30}},
	"big":      {want: tea.ValidationError, params: map[string]any{"bytes": 65 << 20}},
	"late":     {want: tea.Timeout, within: 100 * time.Millisecond},
	"stubborn": {want: tea.Timeout, within: 100 * time.Millisecond},
	"flood":    {params: map[string]any{"bytes": 20 << 20}},
	"gush":     {params: map[string]any{"bytes": 20 << 20}},
	"daemon":   {},
	"child":    {},
	"restless": {},
}

// A version that passes its checks and misbehaves in calls gets typed errors, and
// the next version replaces it.
func TestVersionThatMisbehavesIsReplaced(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	for action, c := range misdeeds {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			dir, set, host := swappable(t, Options{times: times{configure: time.Minute, health: time.Second}}, "crashing")
			set.Limit(limitsIn(t, `{"swap": {"memory_mb": 512}}`))
			host.wantVersion(t, "1.0.0")
			replace(t, dir, "2.0.0", "crashing")
			if done := reload(t, set); done.Err != nil {
				t.Fatal(done.Err)
			}
			bad := host.wantVersion(t, "2.0.0")
			ctx := t.Context()
			if c.within > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.within)
				defer cancel()
			}
			got, err := call(ctx, host.inst, "swap."+action, c.params)
			if c.want != "" {
				wantError(t, err, c.want)
			} else if err != nil {
				t.Fatal(err)
			}
			replace(t, dir, "3.0.0", "crashing")
			if done := reload(t, set); done.Err != nil {
				t.Fatal(done.Err)
			}
			host.wantVersion(t, "3.0.0")
			left := []int{bad.PID}
			if fields, ok := got.(map[string]any); ok && fields["pid"] != nil {
				left = append(left, int(fields["pid"].(int64)))
			}
			awaitGone(t, 20*time.Second, left...)
		})
	}
}

// A version that misbehaves is also replaced while it does, although it has state
// to hand over, for which the call must end.
func TestVersionIsReplacedWhileItMisbehaves(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	for action, c := range misdeeds {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			dir, set, host := swappable(t, Options{times: times{configure: time.Minute, health: time.Second}}, "crashing", "state")
			set.Limit(limitsIn(t, `{"swap": {"memory_mb": 512}}`))
			counts := func(want string) swapResult {
				got, err := host.ask(t.Context(), "swap.count", "")
				if err != nil || got.Version != want {
					t.Fatalf("%+v, %v; want version %s", got, err, want)
				}
				return got
			}
			old := counts("1.0.0")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := call(ctx, host.inst, "swap."+action, c.params)
				ended <- err
			}()
			replace(t, dir, "2.0.0", "crashing", "state")
			if done := reload(t, set); done.Err != nil {
				t.Fatal(done.Err)
			}
			counts("2.0.0")
			if err := <-ended; c.want == "" && err != nil && tea.AsError(err).Type != tea.Timeout {
				t.Errorf("the call ended with %v", err)
			}
			awaitGone(t, 40*time.Second, old.PID)
		})
	}
}

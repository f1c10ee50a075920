package timeactions_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/actiontest"
	"github.com/the-edge-agent/tea/host/internal/builtin/timeactions"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestSleep(t *testing.T) {
	t.Parallel()
	c := actiontest.Open(t, timeactions.Bundle("1.0.0"), nil)
	if diff := cmp.Diff(actiontest.Params{"success": true, "seconds": 0.001}, c.Must("time.sleep", actiontest.Params{"seconds": 0.001})); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []any{-1, 1e12, "x", nil} {
		if bad == nil {
			c.Fails(tea.ValidationError, "time.sleep", nil)
			continue
		}
		c.Fails(tea.ValidationError, "time.sleep", actiontest.Params{"seconds": bad})
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := actiontest.Open(t, timeactions.Bundle("1.0.0"), nil)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithTimeout(t.Context(), 0)
	defer cancelLate()
	for want, ctx := range map[tea.ErrorType]context.Context{tea.Canceled: canceled, tea.Timeout: late} {
		_, err := c.Call(ctx, "time.sleep", actiontest.Params{"seconds": 3600})
		if e := tea.AsError(err); e == nil || e.Type != want {
			t.Errorf("got %v, want a %s", err, want)
		}
	}
}

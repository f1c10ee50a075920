package guard_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// A write that did not reach a machine whose value cannot be read does not move the value
// with which max_step compares, and after one whose outcome is unknown both values count.
func TestStepComparesWithWhatTheMachineMayHave(t *testing.T) {
	t.Parallel()
	settings := tea.Settings{guard.SettingsKey: fmt.Appendf(nil, `{"state": %q}`, t.TempDir())}
	step := 10.0
	failure := tea.Errorf(tea.ConnectionError, "broken")
	for i, c := range []struct {
		value   float64
		failure error
		allowed bool
	}{
		{0, nil, true},
		{10, guard.NotSent(failure), true},
		{20, nil, false}, // from 0
		{10, guard.Refused(failure), true},
		{20, nil, false},
		{10, guard.Unknown(failure), true},
		{20, nil, false}, // from 0 or 10
		{-5, nil, false},
		{5, guard.Unknown(failure), true},
		{11, nil, false},
		{10, nil, true},
		{20, nil, true},
	} {
		g, err := guard.Open(settings) // another process
		if err != nil {
			t.Fatal(err)
		}
		sent := false
		_, _ = g.Permit(t.Context(), &tea.Request{Host: &teatest.Host{}}, guard.Write{
			Setting: "rule", Target: "it", Rule: &guard.Rule{MaxStep: &step}, Value: c.value,
		}, func(context.Context) error { sent = true; return c.failure })
		if sent != c.allowed {
			t.Errorf("write %d, %v: sent %v", i+1, c.value, sent)
		}
	}
}

package checkup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
)

func verdicts(t *testing.T, o Options) map[string]Verdict {
	t.Helper()
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	o.Host = h
	out := map[string]Verdict{}
	for _, f := range Run(t.Context(), o) {
		out[f.Check] = f.Verdict
		if f.Verdict != OK && f.Hint == "" {
			t.Errorf("%s: %s has no hint", f.Check, f.Verdict)
		}
	}
	return out
}

func TestMachineWithoutProblems(t *testing.T) {
	t.Parallel()
	got := verdicts(t, Options{RunDir: t.TempDir(), UTF8: true, Now: time.Now()})
	want := map[string]Verdict{
		"directory of runs": OK, "disk space": OK, "checkpoint": OK, "Lua": OK, "plugins": OK, "clock": OK, "locale": OK, "terminal": OK,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMachineWithProblems(t *testing.T) {
	t.Parallel()
	got := verdicts(t, Options{RunDir: "/proc/nowhere", PluginProblems: []string{"x is broken"}, Now: time.Unix(0, 0)})
	want := map[string]Verdict{
		"directory of runs": Fail, "disk space": Warn, "checkpoint": Fail, "Lua": OK, "plugins": Warn, "clock": Warn, "locale": Warn, "terminal": OK,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

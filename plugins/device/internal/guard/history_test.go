package guard

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// clocked returns guards whose clock the test sets.
func clocked(t *testing.T) (*Guards, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &Guards{settings: Settings{State: t.TempDir()}, now: func() time.Time { return now }}, &now
}

func permit(t *testing.T, g *Guards, w Write) error {
	t.Helper()
	_, err := g.Permit(t.Context(), &tea.Request{Host: &teatest.Host{}}, w, func(context.Context) error { return nil })
	return err
}

func TestWritesOfTheLastMinuteCount(t *testing.T) {
	t.Parallel()
	g, now := clocked(t)
	w := Write{Setting: "s", Machine: "m", Target: "t", Rule: &Rule{Limits: Limits{PerMinute: 2}}}
	for _, c := range []struct {
		after time.Duration
		wait  time.Duration
	}{
		{0, 0},
		{20 * time.Second, 0},
		{30 * time.Second, 10 * time.Second},
		{10 * time.Second, 0},
		{19 * time.Second, time.Second},
		{time.Second, 0},
		// The clock is set back by a year: the earlier writes count as made now.
		{-365 * 24 * time.Hour, time.Minute},
		{59 * time.Second, time.Second},
		{time.Second, 0},
	} {
		*now = now.Add(c.after)
		err := permit(t, g, w)
		switch {
		case c.wait == 0 && err != nil:
			t.Errorf("at %s: %v", now, err)
		case c.wait > 0 && (err == nil || tea.AsError(err).RetryAfter != c.wait):
			t.Errorf("at %s: %v, want a wait of %s", now, err, c.wait)
		}
	}
	w.Machine = "another"
	if err := permit(t, g, w); err != nil {
		t.Errorf("another machine: %v", err)
	}
}

func TestLastWrittenValueLimitsTheStep(t *testing.T) {
	t.Parallel()
	g, _ := clocked(t)
	step := 0.1
	write := func(target string, v float64) error {
		return permit(t, g, Write{Setting: "s", Target: target, Rule: &Rule{MaxStep: &step}, Value: v})
	}
	for _, v := range []float64{5, 5.1, 5.2, 5.3, 5.2} {
		if err := write("a", v); err != nil {
			t.Error(err)
		}
	}
	if err := write("a", 5.31); err == nil {
		t.Error("a step of 0.11 is allowed")
	}
	if err := write("b", 100); err != nil {
		t.Errorf("another target: %v", err)
	}
	if err := permit(t, g, Write{Setting: "s", Target: "a", Rule: &Rule{MaxStep: &step}}); err == nil {
		t.Error("what is not a number is allowed")
	}
}

func TestDamagedHistoryStopsWrites(t *testing.T) {
	t.Parallel()
	g, _ := clocked(t)
	w := Write{Setting: "s", Target: "t", Rule: &Rule{Limits: Limits{PerMinute: 2}}}
	if err := permit(t, g, w); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(g.settings.State, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for _, content := range []string{"", "{", `{"format":2}`, "\x00\x00"} {
		if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := permit(t, g, w); err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("%q: %v", content, err)
		}
	}
	g.settings.State = files[0]
	if err := permit(t, g, w); err == nil || !strings.Contains(err.Error(), "settings.device.state") {
		t.Errorf("a state that is no directory: %v", err)
	}
}

// The question that a person answered lacked the end of a long command.
func TestNobodyApprovesAPartOfAWrite(t *testing.T) {
	t.Parallel()
	g, _ := clocked(t)
	asked := ""
	host := &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){"human.ask": func(_ context.Context, params any) (any, error) {
		asked, _ = params.(map[string]any)["question"].(string)
		return map[string]any{"answer": "approve"}, nil
	}}}
	for size, want := range map[int]tea.ErrorType{2001: "", 20000: "", 20001: tea.PermissionDenied} {
		asked = ""
		w := Write{Setting: "s", Target: "t", Rule: &Rule{Limits: Limits{Approval: true}}, Shown: strings.Repeat("x", size-1) + "!"}
		_, err := g.Permit(t.Context(), &tea.Request{Host: host}, w, func(context.Context) error { return nil })
		switch {
		case want == "" && (err != nil || !strings.Contains(asked, w.Shown)):
			t.Errorf("%d bytes: %v, and the question has %d", size, err, len(asked))
		case want != "" && (err == nil || tea.AsError(err).Type != want || asked != ""):
			t.Errorf("%d bytes: %v, and the question has %d", size, err, len(asked))
		}
	}
}

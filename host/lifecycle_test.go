package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestAClosedWorkflowOrHostIsRefused(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]func(*host.Host, *host.Workflow) error{
		"workflow": func(_ *host.Host, wf *host.Workflow) error { return wf.Close() },
		"host":     func(h *host.Host, _ *host.Workflow) error { return h.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := host.New(host.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			wf, err := h.Parse("test.yaml", []byte("nodes: [{name: a}]"), host.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer wf.Close()
			if err := closed(h, wf); err != nil {
				t.Fatal(err)
			}
			o := host.RunOptions{CheckpointDir: t.TempDir()}
			_, run := wf.Run(t.Context(), o)
			_, resume := wf.Resume(t.Context(), "x", o)
			_, fork := wf.Fork(t.Context(), "x", 1, o)
			_, stream := wf.Stream(t.Context(), o).Result()
			for call, err := range map[string]error{"Run": run, "Resume": resume, "Fork": fork, "Stream": stream} {
				if !errors.Is(err, host.ErrClosed) {
					t.Errorf("%s: got %v", call, err)
				}
			}
		})
	}
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	if _, err := h.Parse("test.yaml", []byte("nodes: [{name: a}]"), host.LoadOptions{}); !errors.Is(err, host.ErrClosed) {
		t.Errorf("Parse: got %v", err)
	}
}

func TestAnActionThatIsTheHostsIsRefused(t *testing.T) {
	t.Parallel()
	read := host.Func("file.read", "Reads.", func(context.Context, map[string]any) (any, error) { return nil, nil })
	_, err := host.New(host.Options{Actions: []tea.Action{read}})
	if err == nil || !strings.Contains(err.Error(), "the action file.read is in both file and program") {
		t.Errorf("got %v", err)
	}
}

func TestResumeErrorsCanBeRecognised(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wf := parse(t, `nodes: [{name: a, uses: human.ask, with: {question: "Go on?"}}]`)
	res, err := wf.Run(t.Context(), host.RunOptions{CheckpointDir: dir})
	if err != nil || res.Status != flow.Waiting {
		t.Fatalf("got %+v, %v", res, err)
	}
	_, err = wf.Resume(t.Context(), res.RunID, host.RunOptions{CheckpointDir: dir, Answers: map[string]any{"b:ask": true}})
	if !errors.Is(err, host.ErrUnknownInterrupt) || !strings.Contains(err.Error(), `"b:ask"`) || !strings.Contains(err.Error(), "waiting: a:ask") {
		t.Errorf("got %v", err)
	}
	var inUse *host.InUseError
	_, err = wf.Resume(t.Context(), res.RunID, host.RunOptions{
		CheckpointDir: dir,
		Hold:          true,
		Ask: func(ctx context.Context, _ flow.Interrupt) (any, error) {
			_, err := wf.Resume(ctx, res.RunID, host.RunOptions{CheckpointDir: dir})
			if !errors.As(err, &inUse) {
				t.Errorf("got %v", err)
			}
			return "yes", nil
		},
	})
	if err != nil || inUse == nil {
		t.Errorf("got %v, %v", err, inUse)
	}
}

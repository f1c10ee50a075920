package teatest_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

type shout struct {
	Text string `json:"text"`
}

func shoutBundle() tea.Bundle {
	return tea.Bundle{Name: "shout", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("shout.twice", "Calls another action and says it twice.",
			func(ctx context.Context, req *tea.Request, p shout) (shout, error) {
				req.Host.Token(ctx, p.Text)
				req.Host.Token(ctx, "!")
				req.Host.Progress(ctx, 0.5, "half")
				req.Host.Log(ctx, slog.LevelWarn, "loud", map[string]any{"n": 1})
				slog.With("a", 1).WithGroup("g").InfoContext(ctx, "said", "text", p.Text)
				slog.InfoContext(context.Background(), "of no call")
				resp, err := req.Host.Invoke(ctx, "text.upper", map[string]any{"text": p.Text})
				if err != nil {
					return shout{}, err
				}
				var upper shout
				if err := resp.Result.Decode(&upper); err != nil {
					return shout{}, err
				}
				return shout{Text: upper.Text + upper.Text}, req.Host.SetNote(ctx, "done", true)
			}),
		tea.NewAction("shout.panic", "Panics.",
			func(context.Context, *tea.Request, struct{}) (shout, error) { panic("too loud") }),
	}}
}

func TestCallRecordsWhatTheActionAsks(t *testing.T) {
	t.Parallel()
	host := &teatest.Host{
		Notes: map[string]any{"earlier": "x"},
		Actions: map[string]func(context.Context, any) (any, error){
			"text.upper": func(_ context.Context, params any) (any, error) {
				return map[string]any{"text": "HEY"}, nil
			},
		},
	}
	got, err := teatest.Call(t, shoutBundle(), teatest.Request{Action: "shout.twice", Params: shout{Text: "hey"}, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"text": "HEYHEY"}, got); diff != "" {
		t.Error(diff)
	}
	want := teatest.Record{
		Tokens:   []string{"hey", "!"},
		Progress: []teatest.Progress{{Fraction: 0.5, Message: "half"}},
		Logs: []teatest.Log{
			{Level: slog.LevelWarn, Message: "loud", Fields: map[string]any{"n": int64(1)}},
			{Level: slog.LevelInfo, Message: "said", Fields: map[string]any{"a": int64(1), "g": map[string]any{"text": "hey"}}},
		},
		Invoked: []teatest.Invoked{{Action: "text.upper", Params: map[string]any{"text": "hey"}}},
		Notes:   map[string]any{"earlier": "x", "done": true},
	}
	if diff := cmp.Diff(want, host.Recorded()); diff != "" {
		t.Error(diff)
	}
}

func TestCallGivesTypedErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		req  teatest.Request
		want tea.ErrorType
	}{
		{"no such action", teatest.Request{Action: "shout.never"}, tea.NotFound},
		{"parameter missing", teatest.Request{Action: "shout.twice"}, tea.ValidationError},
		{"parameter unknown", teatest.Request{Action: "shout.twice", Params: map[string]any{"text": "a", "txt": "b"}}, tea.ValidationError},
		{"host has no such action", teatest.Request{Action: "shout.twice", Params: shout{Text: "a"}}, tea.NotFound},
		{"panic", teatest.Request{Action: "shout.panic"}, tea.InternalError},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := teatest.Call(t, shoutBundle(), c.req)
			var e *tea.Error
			if !errors.As(err, &e) || e.Type != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

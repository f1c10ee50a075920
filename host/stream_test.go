package host_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestStreamYieldsEventsAndTheResult(t *testing.T) {
	t.Parallel()
	wf := parse(t, `nodes: [{name: a, run: "return {n = 1}"}, {name: b}]`)
	var also int
	s := wf.Stream(t.Context(), host.RunOptions{Events: func(flow.Event) { also++ }})
	var got []string
	for e := range s.Events() {
		got = append(got, strings.TrimSpace(string(e.Type)+" "+e.Path))
	}
	want := []string{"run_start", "node_start a", "node_end a", "node_start b", "node_end b", "run_end"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if also != len(want) {
		t.Errorf("RunOptions.Events received %d events, want %d", also, len(want))
	}
	for e := range s.Events() {
		t.Errorf("a second loop got %v", e)
	}
	res, err := s.Result()
	if err != nil || res.Status != flow.Done || res.State["n"] != int64(1) {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestStreamHasTheResultWithoutALoop(t *testing.T) {
	t.Parallel()
	wf := parse(t, `nodes: [{name: a, uses: human.ask, with: {question: "Go on?"}}]`)
	res, err := wf.Stream(t.Context(), host.RunOptions{}).Result()
	if err != nil || res.Status != flow.Waiting || len(res.Pending) != 1 {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestAbandonedStreamStopsTheRun(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	wf := parse(t, "nodes: [{name: a, uses: test.wait}]", host.Func("test.wait", "Waits.", func(ctx context.Context, _ map[string]any) (any, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}))
	s := wf.Stream(t.Context(), host.RunOptions{})
	for e := range s.Events() {
		if e.Type == flow.EventNodeStart {
			<-began
			break
		}
	}
	<-ended
	if res, err := s.Result(); err != nil || res.Status != flow.Stopped {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestStreamThatCannotStartHasTheError(t *testing.T) {
	t.Parallel()
	wf := parse(t, "state_schema: {n: {type: int, required: true}}\nnodes: [{name: a}]")
	s := wf.Stream(t.Context(), host.RunOptions{})
	for e := range s.Events() {
		t.Errorf("got %v", e)
	}
	var input *flow.InputError
	if _, err := s.Result(); !errors.As(err, &input) {
		t.Errorf("got %v", err)
	}
}

// A field that has no JSON form does not cost the record, nor its place in the
// events that are kept.
func TestLogRecordWithOddFieldsArrives(t *testing.T) {
	t.Parallel()
	wf := parse(t, "nodes: [{name: a, uses: test.log}]", tea.Action{
		Name: "test.log",
		Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
			req.Host.Log(ctx, slog.LevelInfo, "odd", map[string]any{"n": 1, "err": io.EOF, "ch": make(chan int)})
			return nil, nil
		},
	})
	dir := t.TempDir()
	res, err := wf.Run(t.Context(), host.RunOptions{CheckpointDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(dir, res.RunID+".events.jsonl"))
	want := `"fields":{"ch":"a Go chan int has no JSON form","err":"EOF","n":1}`
	if err != nil || !strings.Contains(string(kept), want) {
		t.Errorf("got %s, %v", kept, err)
	}
}

// spell is an action that streams a text in pieces, with a log record between.
func spell(pieces ...string) tea.Action {
	return tea.NewAction("test.spell", "Spells.", func(ctx context.Context, req *tea.Request, _ struct{}) (map[string]any, error) {
		for _, piece := range pieces {
			req.Host.Token(ctx, piece)
			req.Host.Log(ctx, slog.LevelInfo, "said "+piece, nil)
		}
		if pieces[len(pieces)-1] == "" {
			return nil, tea.Errorf(tea.ConnectionError, "broken off")
		}
		return map[string]any{}, nil
	}, tea.Streaming())
}

func TestSecretSplitOverTokensIsMasked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"split":       {[]string{"it is TOPSEC", "RETVALUE, see"}, "it is |***, see"},
		"by letters":  {strings.Split("TOPSECRETVALUE!", ""), "***|!"},
		"not one":     {[]string{"TOP", "OLOGY", " x"}, "TOPOLOGY| x"},
		"at the end":  {[]string{"a T"}, "a |T"},
		"half of it":  {[]string{"a TOPSECRET"}, "a |***"},
		"a failure":   {[]string{"a TOPSECRET", ""}, "a |***"},
		"without any": {[]string{"one", " two"}, "one| two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wf := parse(t, "nodes: [{name: a, uses: test.spell}]", spell(c.pieces...))
			var got []string
			var last flow.EventType
			_, err := wf.Run(t.Context(), host.RunOptions{Secrets: map[string]any{"word": "TOPSECRETVALUE"}, Events: func(e flow.Event) {
				if e.Type == flow.EventToken {
					got = append(got, e.Text("text"))
					if last == flow.EventNodeEnd || last == flow.EventNodeError {
						t.Error("a token came behind the node's end")
					}
				}
				last = e.Type
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "|")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

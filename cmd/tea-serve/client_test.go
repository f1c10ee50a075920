package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/client"
)

func newGoClient(t *testing.T, s *service, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(s.url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestGoClient(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	file := filepath.Join(p.home, "token")
	for path, text := range map[string]string{file: "0123456789abcdef0123\n", file + "s": "run 0123456789abcdef0123\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := p.serve("--token-file", file+"s")
	c := newGoClient(t, s, client.Options{TokenFile: file})
	list, problems, err := c.Workflows(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "ask" || len(problems) != 0 {
		t.Fatalf("workflows: %v, %v, %v", list, problems, err)
	}
	if w, err := c.Workflow(t.Context(), "ask"); err != nil || len(w.InputSchema) == 0 {
		t.Errorf("workflow: %v, %v", w, err)
	}
	start := client.Start{Input: map[string]any{"a": 1}, Key: "k"}
	run, err := c.Start(t.Context(), "ask", start)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Start(t.Context(), "ask", start); err != nil || again.ID != run.ID {
		t.Errorf("the same key: %v, %v", again, err)
	}
	id := run.ID
	if run, err = c.Wait(t.Context(), id); err != nil || run.Status != client.Waiting || len(run.Pending) != 1 || string(run.Pending[0].Choices[1]) != `"no"` {
		t.Fatalf("wait: %+v, %v", run, err)
	}
	refused := (*client.Error)(nil)
	if _, err := c.Resume(t.Context(), id, client.Resume{Answers: map[string]any{"q": "maybe"}}); !errors.As(err, &refused) || refused.Status != http.StatusUnprocessableEntity {
		t.Errorf("an answer that is not valid: %v", err)
	}
	if run, err = c.Resume(t.Context(), id, client.Resume{Answers: map[string]any{"q": "no"}}); err != nil || run.ID != id {
		t.Fatalf("resume: %+v, %v", run, err)
	}
	if run, err = c.Wait(t.Context(), id); err != nil || run.Status != client.Done {
		t.Fatalf("wait: %+v, %v", run, err)
	}
	var state map[string]any
	if err := json.Unmarshal(run.State, &state); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": 1.0, "n": 1.0, "answer": "no", "m": 2.0}, state); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if text, err := c.State(t.Context(), id); err != nil || !strings.Contains(string(text), `"answer"`) {
		t.Errorf("state: %s, %v", text, err)
	}
	if svg, err := c.Graph(t.Context(), id); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("graph: %s, %v", svg, err)
	}
	fork, err := c.Fork(t.Context(), id, "first", map[string]any{"n": 10}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if fork, err = c.Wait(t.Context(), fork.ID); err != nil || fork.Status != client.Waiting || fork.ParentRun != id {
		t.Errorf("fork: %+v, %v", fork, err)
	}
	if fork, err = c.Cancel(t.Context(), fork.ID); err != nil || fork.Status != client.Stopped {
		t.Errorf("cancel: %+v, %v", fork, err)
	}
	if _, err := c.Retry(t.Context(), id, 0); !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		t.Errorf("retry of a run that is done: %v", err)
	}
	var ids []string
	for run, err := range c.Runs(t.Context(), client.Filter{Workflow: "ask", Status: client.Done}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, run.ID)
	}
	if diff := cmp.Diff([]string{id}, ids); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// A client that waits does not notice that the server is killed and starts again.
func TestGoClientWaitsAcrossARestart(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	dir, err := os.MkdirTemp("", "tea") //nolint:usetesting // t.TempDir is too deep for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	listen := []string{"--listen", "unix:" + filepath.Join(dir, "s")}
	s := p.serve(listen...)
	c := newGoClient(t, s, client.Options{})
	run, err := c.Start(t.Context(), "block", client.Start{})
	if err != nil {
		t.Fatal(err)
	}
	begun, seen := make(chan struct{}), map[string]bool{}
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		var last int64
		for e, err := range c.Events(t.Context(), run.ID, 0) {
			if err != nil {
				ended <- err
				return
			}
			if e.Seq <= last {
				t.Errorf("event %d follows %d", e.Seq, last)
			}
			last = e.Seq
			if seen[e.Type] = true; e.Path == "wait" {
				select {
				case <-begun:
				default:
					close(begun)
				}
			}
		}
	}()
	<-begun
	s.kill()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.serve(listen...)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if run, err = c.Run(t.Context(), run.ID, false); err != nil || run.Status != client.Done || !seen["run_end"] {
		t.Errorf("run: %+v, %v, events %v", run, err, seen)
	}
}

func TestGoClientChangesSeveralRunsAndCompares(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"fail.yaml": fails, "ask.yaml": ask}).serve()
	c := newGoClient(t, s, client.Options{})
	good, bad, waits := s.run("fail", `{"n": 1}`)["id"].(string), s.run("fail", `{"n": 2}`)["id"].(string), s.run("ask", "{}")["id"].(string)
	d, err := c.Compare(t.Context(), good, bad)
	if err != nil || d.A.ID != good || d.B.Status != client.Failed || !strings.Contains(d.B.Error, "the pump is broken") || d.Path[1].A.Status != "done" || d.Path[1].B.Status != "failed" {
		t.Fatalf("comparison: %+v, %v", d, err)
	}
	if diff := cmp.Diff([]client.StateChange{{Key: "n", Change: "changed", From: json.RawMessage("1"), To: json.RawMessage("2")}}, d.Input); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
	for _, one := range []struct {
		name string
		do   func(ctx context.Context, ids []string) ([]client.Outcome, error)
		want [3]string
	}{
		{"retry", c.RetryAll, [3]string{"error: the run is done", "", "error: "}},
		{"cancel", c.CancelAll, [3]string{"error: the run cannot be stopped", "", "stopped"}},
		{"delete", c.DeleteAll, [3]string{"deleted", "deleted", "deleted"}},
	} {
		if _, err := c.Wait(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
		list, err := one.do(t.Context(), []string{good, bad, waits})
		if err != nil || len(list) != 3 || list[2].ID != waits {
			t.Fatalf("%s: %+v, %v", one.name, list, err)
		}
		for i, o := range list {
			text := string(o.Status)
			if o.Error != "" {
				text = "error: " + o.Error
			}
			if !strings.HasPrefix(text, one.want[i]) {
				t.Errorf("%s %s: %s, want %s", one.name, o.ID, text, one.want[i])
			}
		}
	}
}

// The types of the Go client have the members that the server describes.
func TestTypesOfTheGoClientAreComplete(t *testing.T) {
	t.Parallel()
	d, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"Run": client.Run{}, "Failure": client.Failure{}, "Interrupt": client.Interrupt{}, "Usage": client.Usage{}, "Workflow": client.Workflow{}, "Trigger": client.Trigger{},
		"FileProblem": client.FileProblem{}, "Event": client.Event{}, "DayUsage": client.DayUsage{}, "Comparison": client.Comparison{}, "ComparedRun": client.ComparedRun{}, "ComparedVisit": client.ComparedVisit{}, "StateChange": client.StateChange{}, "Plugin": client.Plugin{}, "Source": client.Source{}, "ScheduledTrigger": client.ScheduledTrigger{}, "Skip": client.Skip{}, "InstalledPlugin": client.InstalledPlugin{}, "PluginChange": client.PluginChange{},
	} {
		var want, got []string
		for member := range at(d.doc, "components", "schemas", name, "properties").(map[string]any) {
			want = append(want, member)
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "-" {
				got = append(got, tag)
			}
		}
		sort.Strings(want)
		sort.Strings(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-described +client):\n%s", name, diff)
		}
	}
}

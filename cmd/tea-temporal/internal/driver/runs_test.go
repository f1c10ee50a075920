package driver

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// output returns what a command of tea prints.
func (s *site) output(args ...string) string {
	s.t.Helper()
	return output(s.t, s.tea("-", append(args, "--engine", "temporal")...))
}

func output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tea %q: %v\n%s", cmd.Args[1:], err, stderr.String())
	}
	return string(out)
}

// eventually waits for what the server shows a moment later.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestCommandsForRuns(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	const text = `
name: asking
nodes:
  - {name: first, uses: json.parse, with: {text: "1"}, output: a}
  - {name: ask, uses: human.ask, with: {question: "go?", choices: ["yes", "no"]}, output: answer}
  - {name: last, run: 'return {b = (state.given or 0) + 1}'}
`
	waiting := s.run(t.Context(), text, host.RunOptions{})
	failed := s.run(t.Context(), "name: failing\nnodes:\n  - {name: bad, run: 'error(\"broken\")'}\n", host.RunOptions{})

	want := map[string][]string{waiting.RunID: {"asking", "waiting", "ask"}, failed.RunID: {"failing", "failed", "bad"}}
	eventually(t, "both runs are listed", func() bool {
		var list []host.RunEntry
		if err := json.Unmarshal([]byte(s.output("runs", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, e := range list {
			got[e.ID] = []string{e.Workflow, string(e.Status), e.Node}
		}
		return cmp.Equal(got, want)
	})
	found, err := exec.CommandContext(t.Context(), program(t), "workflow", "list", "--address", s.address, "--query", `TeaWorkflow = "failing" AND TeaStatus = "failed" AND TeaNode = "bad" AND TaskQueue = "`+s.flags.Queue+`"`, "-o", "json").CombinedOutput() //nolint:gosec // of the tests
	if err != nil || !strings.Contains(string(found), failed.RunID) {
		t.Errorf("a search by attributes finds %s, %v", found, err)
	}

	for run, parts := range map[string][]string{
		waiting.RunID: {"asking", "waiting", "go?", "resume with", "--engine temporal"}, failed.RunID: {"failing", "failed", "broken"},
	} {
		for _, part := range parts {
			if out := s.output("runs", "show", run); !strings.Contains(out, part) {
				t.Errorf("tea runs show has no %q:\n%s", part, out)
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(s.output("runs", "events", failed.RunID, "--follow")), "\n")
	if !strings.Contains(lines[0], `"run_start"`) || !strings.Contains(lines[len(lines)-1], `"run_end"`) {
		t.Errorf("the events are %q", lines)
	}

	// A fork after the first node asks again, and takes input.
	cmd := s.tea("-", "fork", waiting.RunID, "--at", "first", "-i", `{"given": 41}`, "--engine", "temporal")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 130 {
		t.Fatalf("tea fork: %v\n%s", err, stderr.String())
	}
	_, after, _ := strings.Cut(stderr.String(), " resume ")
	fork, _, _ := strings.Cut(after, " ")
	if out := s.output("resume", fork, "--answer", `ask="yes"`); !strings.Contains(out, `"b":42`) && !strings.Contains(out, `"b": 42`) {
		t.Errorf("the fork ends with %s", out)
	}

	s.output("runs", "cancel", waiting.RunID)
	eventually(t, "the run is stopped", func() bool {
		run, err := Engine{}.Show(t.Context(), s.flags, waiting.RunID)
		return err == nil && run.Status == flow.Stopped
	})
	s.replayAll(waiting.RunID)
	s.replayAll(fork)
}

func TestScheduleStartsRuns(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	id := "daily-" + host.NewRunID()
	at := func(text string, more ...string) (string, error) {
		cmd := s.tea("-", append([]string{"run", write(t, "flow.yaml", text), "--engine", "temporal", "--schedule-id", id}, more...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	handle := s.client.ScheduleClient().GetHandle(t.Context(), id)
	text := func(n int) string {
		return fmt.Sprintf("name: daily\nnodes:\n  - {name: last, run: 'return {n = state.given + %d}'}\n", n)
	}
	// The second one replaces the first.
	for i := range 2 {
		if out, err := at(text(i), "-i", `{"given": 40}`, "--schedule", "CRON_TZ=Europe/Berlin 0 6 * * *", "--schedule", "CRON_TZ=Europe/Berlin 30 7 * * 1"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := handle.Trigger(t.Context(), client.ScheduleTriggerOptions{Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL}); err != nil {
			t.Fatal(err)
		}
		// The id of a run has the second of its start.
		eventually(t, "the run is done, and its second is over", func() bool {
			list, err := Engine{}.Runs(t.Context(), s.flags)
			if err != nil {
				t.Fatal(err)
			}
			return len(list) == i+1 && list[0].Status == flow.Done && time.Since(list[0].StartedAt) > time.Second
		})
	}
	list, err := Engine{}.Runs(t.Context(), s.flags)
	if err != nil {
		t.Fatal(err)
	}
	// The ids of the runs begin with that of the schedule.
	for i, n := range []string{`"n":41`, `"n":40`} {
		var end outcome
		if err := s.client.GetWorkflow(t.Context(), list[i].ID, "").Get(t.Context(), &end); err != nil || !strings.Contains(string(end.State), n) {
			t.Errorf("the run has the state %s, %v", end.State, err)
		}
		if out := s.output("runs", "events", list[i].ID); !strings.HasPrefix(list[i].ID, id+"-") || !strings.Contains(out, `"run_id":"`+list[i].ID+`"`) {
			t.Errorf("run %s has the events\n%s", list[i].ID, out)
		}
	}
	if out, err := at(text(0), "--schedule", "at noon"); err == nil || !strings.Contains(out, "at noon") {
		t.Errorf("a wrong time: %v\n%s", err, out)
	}
	if out, err := at(text(0), "--schedule", "off"); err != nil || !strings.Contains(out, "removed the schedule") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := handle.Describe(t.Context()); err == nil {
		t.Error("the schedule remains")
	}
}

// A run has several executions when it is continued, and when it goes on after a
// failure.
func TestEventsOfAllExecutions(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	wf := s.load(`
nodes:
  - {name: all, type: dynamic_parallel, max_concurrency: 1, items: "{{ range(7) | list }}", action: {uses: probe.call, with: {value: "{{ item }}"}}, output: all}
  - {name: check, run: 'if not state.ok then error("not yet") end'}
  - {name: last, uses: probe.call, with: {value: 2}, output: last}
`)
	var want, got []int64
	o := host.RunOptions{RunID: host.NewRunID(), Events: func(e flow.Event) { want = append(want, e.Seq) }}
	e := Engine{handOver: everyThird}
	res, err := e.Run(t.Context(), s.flags, teacmd.Job{Workflow: wf, Options: o})
	if err != nil || res.Status != flow.Failed {
		t.Fatalf("got %v, %v", res, err)
	}
	o.Input = map[string]any{"ok": true}
	res, err = e.Resume(t.Context(), s.flags, o.RunID, teacmd.Job{Workflow: wf, Options: o})
	if err != nil || res.Status != flow.Done {
		t.Fatalf("got %v, %v", res, err)
	}
	for _, follow := range []bool{false, true} {
		for _, after := range []int64{0, 4, want[len(want)-1]} {
			got = nil
			err := e.Events(t.Context(), s.flags, o.RunID, after, follow, func(e flow.Event) { got = append(got, e.Seq) })
			if diff := cmp.Diff(want[after:], got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("after %d, follow %v: %v, (-want +got):\n%s", after, follow, err, diff)
			}
		}
	}
}

package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
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
		var list []checkpoints.Entry
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
	// The ids of the runs begin with the id of the schedule.
	for i, n := range []string{`"n":41`, `"n":40`} {
		var end outcome
		if err := s.client.GetWorkflow(t.Context(), list[i].ID, "").Get(t.Context(), &end); err != nil || !strings.Contains(string(end.State), n) {
			t.Errorf("the run has the state %s, %v", end.State, err)
		}
		if out := s.output("runs", "events", list[i].ID); !strings.HasPrefix(list[i].ID, id+"-") || !strings.Contains(out, `"run_id":"`+list[i].ID+`"`) {
			t.Errorf("run %s has the events\n%s", list[i].ID, out)
		}
	}
	if out, err := at(text(0), "--schedule", "off"); err != nil || !strings.Contains(out, "removed the schedule") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := at(text(0), "--schedule", "off"); err == nil || !strings.Contains(out, `there is no schedule "`+id+`"`) {
		t.Errorf("removed twice: %v\n%s", err, out)
	}
	for cron, want := range map[string]string{
		"at noon": "hint: write minute, hour", "61 * * * *": `minute: "61" is not between 0 and 59`, "CRON_TZ=Europe/Berlin 0 0 30 2 *": "never matches",
		"CRON_TZ=Mars/Phobos 0 6 * * *": "Mars/Phobos", "0 61 * * * *": "not in range",
	} {
		out, err := at(text(0), "--schedule", cron)
		if end := (*exec.ExitError)(nil); !errors.As(err, &end) || end.ExitCode() != 2 || !strings.Contains(out, want) {
			t.Errorf("--schedule %q: %v, want %q in\n%s", cron, err, want, out)
		}
	}
	if _, err := handle.Describe(t.Context()); err == nil {
		t.Error("the schedule remains")
	}
}

func TestCommandsForEndedRunsAreLikeThoseForLocalRuns(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	const text = "name: counts\nnodes:\n  - {name: last, run: 'return {n = 1}'}\n"
	there := s.run(t.Context(), text, host.RunOptions{}).RunID
	dir := t.TempDir()
	wf, err := h.Load(write(t, "flow.yaml", text), host.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wf.Close() })
	res, err := wf.Run(t.Context(), host.RunOptions{CheckpointDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		words []string // RUN is the run
		want  string
	}{
		{[]string{"resume", "RUN"}, `"n": 1`},
		{[]string{"resume", "RUN", "--retry-failed"}, "nothing to retry: no branch of the run has failed"},
		{[]string{"resume", "RUN", "-i", `{"a": 1}`}, "use `tea fork` to continue from one of its steps"},
		{[]string{"resume", "RUN", "--answer", `ask="yes"`}, `no pending interrupt "ask"`},
		{[]string{"resume", "nosuch"}, `there is no run "nosuch"`},
		{[]string{"runs", "show", "nosuch"}, `there is no run "nosuch"`},
	} {
		words := func(run string, more ...string) (words []string) {
			for _, word := range tt.words {
				words = append(words, strings.ReplaceAll(word, "RUN", run))
			}
			return append(words, more...)
		}
		var codes []int
		for _, cmd := range []*exec.Cmd{command(t, "-", words(res.RunID, "-c", dir)...), s.tea("-", words(there, "--engine", "temporal")...)} {
			out, _ := cmd.CombinedOutput()
			if codes = append(codes, cmd.ProcessState.ExitCode()); !strings.Contains(string(out), tt.want) {
				t.Errorf("tea %q: there is no %q in\n%s", cmd.Args[1:], tt.want, out)
			}
		}
		if codes[0] != codes[1] {
			t.Errorf("tea %q ends with %d, on Temporal with %d", tt.words, codes[0], codes[1])
		}
	}
}

func TestRunsAreListedByTheirStart(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	var want []string
	first := s.asked() // and still is when the others have ended
	want = append(want, first.RunID)
	const text = "nodes:\n  - {name: check, run: 'if not state.ok then error(\"not yet\") end'}\n"
	for range 2 {
		want = append(want, s.run(t.Context(), text, host.RunOptions{}).RunID)
	}
	slices.Reverse(want)
	// A run that has continued keeps its place.
	job := teacmd.Job{Workflow: s.load(text), Options: host.RunOptions{Input: map[string]any{"ok": true}}}
	if res, err := (Engine{}).Resume(t.Context(), s.flags, want[1], job); err != nil || res.Status != flow.Done {
		t.Fatalf("got %v, %v", res, err)
	}
	var got []string
	eventually(t, "all are listed", func() bool {
		list, err := Engine{}.Runs(t.Context(), s.flags)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, e := range list {
			got = append(got, e.ID)
		}
		return len(list) == 3 && list[1].Status == flow.Done
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Its events are more than one answer of the run has.
func TestQuestionAfterManyEventsIsAnswered(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	res := s.run(t.Context(), `
nodes:
  - {name: all, type: dynamic_parallel, items: "{{ range(150) | list }}", steps: [{name: one, uses: json.parse, with: {text: "1"}, output: n}]}
  - {name: ask, uses: human.ask, with: {question: "go?", choices: ["yes", "no"]}, output: answer}
`, host.RunOptions{})
	if res.Status != flow.Waiting {
		t.Fatalf("got %s, %v", res.Status, res.Err)
	}
	if out := s.output("resume", res.RunID, "--answer", `ask="yes"`); !strings.Contains(out, `"answer"`) {
		t.Errorf("the run ends with %s", out)
	}
	if out := s.output("resume", res.RunID); !strings.Contains(out, `"answer"`) {
		t.Errorf("the run has ended with %s", out)
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

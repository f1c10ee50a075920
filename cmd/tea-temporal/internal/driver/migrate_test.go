package driver

import (
	"strings"
	"testing"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// A workflow with an error is replaced, and what the run has done stays done.
func TestRunContinuesWithARepairedWorkflow(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newSite(t, h, nil)
	const first = "nodes:\n  - {name: call, uses: probe.call, with: {value: 1}, output: more}\n"
	const broken, repaired = first + "  - {name: last, run: 'return {n = state.missing.n}'}\n", first + "  - {name: last, run: 'return {n = state.more.value + 41}'}\n"
	failed := s.run(t.Context(), broken, host.RunOptions{})
	if failed.Status != flow.Failed {
		t.Fatalf("got %s, %v", failed.Status, failed.Err)
	}
	res, err := Engine{}.Resume(t.Context(), s.flags, failed.RunID, teacmd.Job{Workflow: s.load(repaired), Options: host.RunOptions{Migrate: true}})
	if err != nil || res.Status != flow.Done || res.State["n"] != int64(42) {
		t.Errorf("got %v, %v", res, err)
	}
	if calls := p.take(failed.RunID); len(calls) != 1 {
		t.Errorf("the calls were %q", calls)
	}
	s.replayAll(failed.RunID)
}

func TestWorkflowOfARunIsReplacedWhenItHasEnded(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	const name, first = "name: orders\nnodes:\n", "  - {name: first, uses: json.parse, with: {text: \"[41]\"}, output: got}\n"
	const rest = `  - {name: ask, uses: human.ask, with: {question: "go?", choices: ["yes", "no"]}, output: answer}
  - {name: last, run: 'return {n = 42}'}
`
	waiting := s.run(t.Context(), name+first+rest, host.RunOptions{}).RunID
	file, other := write(t, "repaired.yaml", name+first+rest), write(t, "other.yaml", name+rest)
	ends := func(want int, text string, words ...string) {
		t.Helper()
		cmd := s.tea("-", append([]string{"resume", waiting, "--engine", "temporal"}, words...)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want || !strings.Contains(string(out), text) {
			t.Errorf("tea %q ends with %d, not %d, want %q in\n%s", cmd.Args[1:], code, want, text, out)
		}
	}
	ends(2, "--migrate or --force", "--workflow", file)
	ends(2, "--workflow FILE", "--migrate")
	ends(2, "runs cancel "+waiting, "--migrate", "--workflow", file)
	s.output("runs", "cancel", waiting)
	ends(2, "no longer reaches first", "--migrate", "--workflow", other)
	ends(130, "go?", "--migrate", "--workflow", file)
	ends(0, `"n": 42`, "--answer", `ask="yes"`)
}

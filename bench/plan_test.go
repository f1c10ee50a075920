package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
)

// BenchmarkPlan reports what a subtask of a plan costs besides its action, which
// does nothing: the plugin runs in a separate process, and each result is noted
// in the checkpoint.
func BenchmarkPlan(b *testing.B) {
	const subtasks = 1000
	dir := b.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "tea-plugin-plan"), "./plugins/plan/cmd/tea-plugin-plan")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the plugin: %v\n%s", err, out)
	}
	plugins, problems, err := subproc.Discover(b.Context(), subproc.Options{Dirs: []string{dir}, CacheDir: b.TempDir()})
	if err != nil || len(problems) > 0 {
		b.Fatal(err, problems)
	}
	b.Cleanup(func() { plugins.Close() })
	work := host.Func("bench.work", "Does nothing.", func(_ context.Context, params map[string]any) (any, error) { return params, nil })
	h, err := host.New(host.Options{Plugins: plugins, Actions: []tea.Action{work}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close() })
	var list strings.Builder
	for i := range subtasks {
		needs := ""
		if i >= 10 { // ten chains
			needs = fmt.Sprintf(", dependencies: [s%d]", i-10)
		}
		fmt.Fprintf(&list, "          - {id: s%d, description: do it%s}\n", i, needs)
	}
	for _, c := range []struct {
		name       string
		with       string
		durability flow.Durability
	}{
		{"concurrent", `{id: "{{ subtask.id }}"}`, flow.DurabilityExit},
		{"one by one", `{id: "{{ subtask.id }}"}`, flow.DurabilityExit},
		{"results", `{after: "{{ results[subtask.dependencies[0]] }}"}, output: "{{ subtask.id }}"`, flow.DurabilityExit},
		{"sync", `{id: "{{ subtask.id }}"}`, flow.DurabilitySync},
	} {
		wf := parse(b, h, fmt.Sprintf(`
nodes:
  - name: go
    uses: plan.execute
    output: done
    with:
      parallel: %v
      subtask_executor: {action: bench.work, with: %s}
      plan:
        subtasks:
%s`, c.name != "one by one", c.with, list.String()))
		b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				runOnce(b, wf, host.RunOptions{CheckpointDir: b.TempDir(), Durability: c.durability})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/subtasks, "ns/subtask")
		})
	}
}

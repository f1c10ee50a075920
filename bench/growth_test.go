package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// newHost is a host with one action that does nothing and those given.
func newHost(b *testing.B, actions ...tea.Action) *host.Host {
	b.Helper()
	noop := host.Func("bench.noop", "Does nothing.", func(context.Context, map[string]any) (any, error) { return nil, nil })
	h, err := host.New(host.Options{Actions: append(actions, noop)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close() })
	return h
}

func parse(b *testing.B, h *host.Host, text string) *host.Workflow {
	b.Helper()
	wf, err := h.Parse("bench.yaml", []byte(text), host.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { wf.Close() })
	return wf
}

func runOnce(b *testing.B, wf *host.Workflow, o host.RunOptions) *flow.Result {
	b.Helper()
	res, err := wf.Run(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	if res.Status != flow.Done {
		b.Fatalf("the run is %s: %v", res.Status, res.Err)
	}
	return res
}

func perUnit(b *testing.B, n int, metric string) {
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(n), metric)
}

func BenchmarkNodes(b *testing.B) {
	for _, n := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			wf := parse(b, newHost(b), chain(n))
			for b.Loop() {
				runOnce(b, wf, host.RunOptions{})
			}
			perUnit(b, n, "ns/node")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h, text := newHost(b), []byte(chain(n))
			for b.Loop() {
				wf, err := h.Parse("bench.yaml", text, host.LoadOptions{})
				if err != nil {
					b.Fatal(err)
				}
				if err := wf.Close(); err != nil {
					b.Fatal(err)
				}
			}
			perUnit(b, n, "ns/node")
		})
	}
}

func BenchmarkBranches(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			wf := parse(b, newHost(b), fanOut(n, "bench.noop"))
			for b.Loop() {
				runOnce(b, wf, host.RunOptions{})
			}
			perUnit(b, n, "ns/branch")
		})
	}
}

// texts is a value of about size bytes, in strings of 1 KB.
func texts(size int) []any {
	list := make([]any, max(1, size/1000))
	for i := range list {
		list[i] = fmt.Sprintf("%08d", i) + strings.Repeat("x", 992)
	}
	return list
}

func BenchmarkState(b *testing.B) {
	for _, size := range []int{1_000, 100_000, 10_000_000} {
		b.Run(fmt.Sprintf("%dKB", size/1000), func(b *testing.B) {
			wf := parse(b, newHost(b), chain(10))
			input := map[string]any{"data": texts(size)}
			for b.Loop() {
				runOnce(b, wf, host.RunOptions{Input: input})
			}
		})
	}
}

// steps is a loop of n passes, each with an update of 1 KB.
func steps(n int) string {
	return fmt.Sprintf(`config: {max_steps: 5000}
initial_state: {n: 0}
nodes:
  - name: loop
    type: while_loop
    condition: state.n < %d
    max_iterations: 1000
    body:
      - {name: step, run: "return {n = state.n + 1, text = string.rep('x', 1000)}"}
`, n)
}

// BenchmarkJournal reports how large a checkpoint is after so many steps.
func BenchmarkJournal(b *testing.B) {
	for _, n := range []int{10, 100, 1_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			wf, dir := parse(b, newHost(b), steps(n)), b.TempDir()
			var size int64
			for b.Loop() {
				res := runOnce(b, wf, host.RunOptions{CheckpointDir: dir, Durability: flow.DurabilityAsync})
				info, err := os.Stat(res.Checkpoint)
				if err != nil {
					b.Fatal(err)
				}
				size = info.Size()
			}
			b.ReportMetric(float64(size), "file-bytes")
			b.ReportMetric(float64(size)/float64(n), "file-bytes/step")
		})
	}
}

// BenchmarkDurableStep is the time from the end of one step to the end of the
// next, each on disk before its successor starts.
func BenchmarkDurableStep(b *testing.B) {
	wf, dir := parse(b, newHost(b), steps(200)), b.TempDir()
	var took []time.Duration
	for b.Loop() {
		var last time.Time
		runOnce(b, wf, host.RunOptions{CheckpointDir: dir, Durability: flow.DurabilitySync, Events: func(e flow.Event) {
			if e.Type != "node_end" || e.Node != "step" {
				return
			}
			if !last.IsZero() {
				took = append(took, e.Time.Sub(last))
			}
			last = e.Time
		}})
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "median-ns/step")
}

package host_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	chain3  = "nodes: [{name: a, uses: bench.noop}, {name: b, uses: bench.noop}, {name: c, uses: bench.noop}]"
	fanOut5 = `
nodes: [{name: a}, {name: b1, uses: bench.noop}, {name: b2, uses: bench.noop}, {name: b3, uses: bench.noop}, {name: b4, uses: bench.noop}, {name: b5, uses: bench.noop}, {name: j}]
edges: [{from: a, parallel: [b1, b2, b3, b4, b5], fan_in: j}]
`
)

// load parses a workflow for a benchmark.
func load(b *testing.B, text string) *host.Workflow {
	b.Helper()
	noop := host.Func("bench.noop", "Does nothing.", func(context.Context, map[string]any) (any, error) { return nil, nil })
	h, err := host.New(host.Options{Actions: []tea.Action{noop}})
	if err != nil {
		b.Fatal(err)
	}
	wf, err := h.Parse("bench.yaml", []byte(text), host.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { wf.Close(); h.Close() })
	return wf
}

func repeat(b *testing.B, wf *host.Workflow, o host.RunOptions) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		res, err := wf.Run(context.Background(), o)
		if err != nil || res.Status != flow.Done {
			b.Fatal(err, res.Err)
		}
	}
}

func BenchmarkChain3(b *testing.B) {
	repeat(b, load(b, chain3), host.RunOptions{})
}

func BenchmarkFanOut5(b *testing.B) {
	repeat(b, load(b, fanOut5), host.RunOptions{})
}

// BenchmarkLuaNode returns the time of one node in a chain of ten, the run's own
// time spread over them.
func BenchmarkLuaNode(b *testing.B) {
	state := map[string]any{}
	for i := range 20 {
		state[fmt.Sprintf("key%d", i)] = int64(i)
	}
	const nodes = 10
	text := "nodes:\n"
	for i := range nodes {
		text += fmt.Sprintf("  - {name: n%d, run: \"return {x = state.key3 + state.key4}\"}\n", i)
	}
	repeat(b, load(b, text), host.RunOptions{Input: state})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*nodes), "ns/node")
}

func BenchmarkDurableStep(b *testing.B) {
	text := "initial_state: {n: 0}\nnodes:\n  - name: loop\n    type: while_loop\n    condition: state.n < 100\n    max_iterations: 1000\n    body:\n      - {name: w, run: \"return {n = state.n + 1, pad = string.rep('x', 1000)}\"}\n"
	repeat(b, load(b, text), host.RunOptions{CheckpointDir: b.TempDir()})
}

func BenchmarkEmptyRun(b *testing.B) {
	repeat(b, load(b, "nodes: [{name: a}]"), host.RunOptions{})
}

// BenchmarkLoad reads and checks workflows of Lua nodes whose bodies are equal
// or all different.
func BenchmarkLoad(b *testing.B) {
	for _, size := range []int{1000, 10_000} {
		for name, body := range map[string]string{"equal": "return {total = state.total + 1}", "different": "local step = %d\nreturn {total = state.total + step, last%[1]d = step}"} {
			var text strings.Builder
			text.WriteString("initial_state: {total: 0}\nnodes:\n")
			for i := range size {
				code := body
				if name == "different" {
					code = fmt.Sprintf(body, i)
				}
				fmt.Fprintf(&text, "  - name: n%d\n    run: |\n      %s\n", i, strings.ReplaceAll(code, "\n", "\n      "))
			}
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				h, err := host.New(host.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { h.Close() })
				b.ReportAllocs()
				for b.Loop() {
					wf, err := h.Parse("bench.yaml", []byte(text.String()), host.LoadOptions{})
					if err != nil {
						b.Fatal(err)
					}
					wf.Close()
				}
			})
		}
	}
}

// BenchmarkMap runs a Lua node for each item of a map.
func BenchmarkMap(b *testing.B) {
	const items = 20_000
	list := make([]any, items)
	for i := range list {
		list[i] = int64(i)
	}
	text := "nodes:\n  - {name: each, type: dynamic_parallel, items: \"{{ state.list }}\", item_var: item, steps: [{name: work, run: 'return {n = item * 2}'}], fan_in: join}\n  - {name: join}\n"
	repeat(b, load(b, text), host.RunOptions{Input: map[string]any{"list": list}})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*items), "ns/item")
}

// TestARunAllocatesLittle limits the allocations of a run to 16 for a chain of three and 41
// for a fan-out of five, plus those of workers that start when the machine is busy.
func TestARunAllocatesLittle(t *testing.T) { //nolint:paralleltest // other tests allocate, too
	h, err := host.New(host.Options{Actions: []tea.Action{host.Func("bench.noop", "Does nothing.", func(context.Context, map[string]any) (any, error) { return nil, nil })}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for text, limit := range map[string]float64{chain3: 20, fanOut5: 50} {
		wf, err := h.Parse("allocations.yaml", []byte(text), host.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer wf.Close()
		got := testing.AllocsPerRun(100, func() {
			if res, err := wf.Run(context.Background(), host.RunOptions{}); err != nil || res.Status != flow.Done {
				t.Error(res, err)
			}
		})
		if got > limit {
			t.Errorf("%.0f allocations, more than %.0f, for %s", got, limit, text)
		}
	}
}

// TestAMapKeepsLittleOfItsItems limits the memory that a map of 10,000 items holds when all
// of them have ended to about 1 KB per item, including its state and result.
func TestAMapKeepsLittleOfItsItems(t *testing.T) { //nolint:paralleltest // it measures the heap
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	wf, err := h.Parse("map.yaml", []byte(`
nodes:
  - {name: each, type: dynamic_parallel, items: "{{ state.items }}", action: {uses: json.stringify, with: {data: "{{ item }}"}}, fan_in: join}
  - {name: join, run: "return {items = {}, results = #parallel_results}"}
`), host.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer wf.Close()
	items := make([]any, 10_000)
	for i := range items {
		items[i] = int64(i)
	}
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before, after := heap(), 0
	res, err := wf.Run(context.Background(), host.RunOptions{Input: map[string]any{"items": items}, Events: func(e flow.Event) {
		if e.Type == flow.EventNodeStart && e.Node == "join" {
			after = heap()
		}
	}})
	if err != nil || res.Status != flow.Done {
		t.Fatal(res, err)
	}
	if kept := (after - before) / len(items); kept > 1150 {
		t.Errorf("%d bytes for each item", kept)
	}
}

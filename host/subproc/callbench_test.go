package subproc_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/bench/bare"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/subproc"
)

// BenchmarkLuaLoop is a call of a plugin's action in a loop of a Lua node, in
// turns with the same call through go-plugin alone with encoding/json at both
// ends. The ratio of the medians is what tea promises.
func BenchmarkLuaLoop(b *testing.B) {
	const calls = 20 // in one run
	h := echoHost(b)
	wf := parse(b, h, fmt.Sprintf(`
settings: {lua: {timeout_seconds: 60}}
nodes:
  - name: loop
    run: |
      local params, last = state.params
      for i = 1, %d do last = tea.action("echo.back", params) end
      return {last = last ~= nil}
`, calls))
	peer := startBare(b)
	for _, c := range []struct {
		name   string
		params map[string]any
	}{
		{"records/1KB", map[string]any{"records": records(12)}},
		{"text/1KB", map[string]any{"text": strings.Repeat("0123456789abcdef", 60)}},
		{"records/1MB", map[string]any{"records": records(12000)}},
		{"text/1MB", map[string]any{"text": strings.Repeat("0123456789abcdef", 1<<16)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			compare(b, calls, "call", func() {
				runOnce(b, wf, host.RunOptions{Input: map[string]any{"params": c.params}})
			}, func() {
				for range calls {
					if _, err := peer.Echo(b.Context(), c.params); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// records are what sensors send, some 85 bytes each.
func records(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = map[string]any{"id": float64(i), "name": fmt.Sprintf("sensor-%d", i%97), "value": 20.25 + float64(i%7), "ok": i%3 == 0, "tags": []any{"a", "b"}}
	}
	return all
}

// echoHost is a host with the plugin echo.
func echoHost(b *testing.B) *host.Host {
	b.Helper()
	dir := b.TempDir()
	if err := os.Symlink(subproc.Executable(b), filepath.Join(dir, "tea-plugin-echo")); err != nil {
		b.Fatal(err)
	}
	plugins, _, err := subproc.Discover(b.Context(), subproc.Options{Dirs: []string{dir}, CacheDir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	h, err := host.New(host.Options{Plugins: plugins})
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

func runOnce(b *testing.B, wf *host.Workflow, o host.RunOptions) {
	b.Helper()
	res, err := wf.Run(b.Context(), o)
	if err != nil || res.Status != flow.Done {
		b.Fatal(err, res)
	}
}

// startBare starts the plugin of bare go-plugin.
func startBare(b *testing.B) *bare.Host {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bare-echo")
	if err := os.Symlink(subproc.Executable(b), path); err != nil {
		b.Fatal(err)
	}
	peer, err := bare.Start(exec.CommandContext(b.Context(), path))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(peer.Close)
	return peer
}

// compare runs n units through tea and through bare go-plugin, in turns, and
// reports the medians of what a unit takes.
func compare(b *testing.B, n int, unit string, tea, alone func()) {
	b.Helper()
	took := func(run func()) time.Duration {
		began := time.Now()
		run()
		return time.Since(began) / time.Duration(n)
	}
	var through, direct []time.Duration
	for b.Loop() {
		through = append(through, took(tea))
		b.StopTimer()
		direct = append(direct, took(alone))
		b.StartTimer()
	}
	slices.Sort(through)
	slices.Sort(direct)
	median, before := through[len(through)/2], direct[len(direct)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median), "median-ns/"+unit)
	b.ReportMetric(float64(before), "bare-median-ns/"+unit)
	b.ReportMetric(float64(median-before), "added-ns/"+unit)
	b.ReportMetric(float64(median)/float64(before), "x-bare")
}

// BenchmarkNodeCalls is the call of a plugin's action by a node, in turns with
// the same calls by a client of bare go-plugin: one after the other, and several
// at a time as the items of a map.
func BenchmarkNodeCalls(b *testing.B) {
	const calls, together = 200, 8
	peer, h := startBare(b), echoHost(b)
	params := map[string]any{"text": "hello", "n": 1.0}
	call := func(n int) {
		for range n {
			if _, err := peer.Echo(b.Context(), params); err != nil {
				b.Error(err)
			}
		}
	}
	b.Run("chain", func(b *testing.B) {
		wf := parse(b, h, chain(calls))
		compare(b, calls, "call", func() { runOnce(b, wf, host.RunOptions{}) }, func() { call(calls) })
	})
	b.Run("map", func(b *testing.B) {
		wf := parse(b, h, fmt.Sprintf(mapCalls, calls, together))
		compare(b, calls, "call", func() { runOnce(b, wf, host.RunOptions{}) }, func() {
			var all sync.WaitGroup
			for range together {
				all.Go(func() { call(calls / together) })
			}
			all.Wait()
		})
	})
}

// chain is a workflow of n nodes that call the plugin.
func chain(n int) string {
	var text strings.Builder
	text.WriteString("nodes:\n")
	for i := range n {
		fmt.Fprintf(&text, "  - {name: n%d, uses: echo.back, with: {text: hello, n: 1.0}, output: last}\n", i)
	}
	return text.String()
}

// mapCalls is a workflow of a map whose items call the plugin.
const mapCalls = `nodes:
  - name: list
    run: |
      local items = {}
      for i = 1, %d do items[i] = i end
      return {items = items}
  - name: each
    type: dynamic_parallel
    items: "{{ state.items }}"
    max_concurrency: %d
    action: {uses: echo.back, with: {text: hello, n: 1.0}}
    fan_in: join
  - {name: join, run: "return {results = #parallel_results}"}
`

// BenchmarkTokens is a token of a plugin's stream, from the action to the
// receiver of the run's events, in turns with the same stream of bare go-plugin.
func BenchmarkTokens(b *testing.B) {
	const tokens = 2000
	peer, h := startBare(b), echoHost(b)
	wf := parse(b, h, fmt.Sprintf("nodes: [{name: say, uses: echo.tokens, with: {tokens: %d}}]\n", tokens))
	compare(b, tokens, "token", func() {
		read := 0
		runOnce(b, wf, host.RunOptions{Events: func(e flow.Event) {
			if e.Type == flow.EventToken {
				read++
			}
		}})
		if read != tokens {
			b.Fatalf("%d tokens were read, want %d", read, tokens)
		}
	}, func() {
		if read, err := peer.Tokens(b.Context(), tokens); err != nil || read != tokens {
			b.Fatalf("%d tokens were read, want %d: %v", read, tokens, err)
		}
	})
}

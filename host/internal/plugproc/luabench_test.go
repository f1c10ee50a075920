package plugproc_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/plugproc"
	"github.com/the-edge-agent/tea/host/subproc"
)

// BenchmarkLuaLoop is a call of a plugin's action in a loop of a Lua node, in
// turns with the same call through go-plugin alone with encoding/json at both
// ends. The ratio of the medians is what tea promises.
func BenchmarkLuaLoop(b *testing.B) {
	const calls = 20 // in one run
	dir := b.TempDir()
	if err := os.Symlink(plugproc.Executable(b), filepath.Join(dir, "tea-plugin-echo")); err != nil {
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
	wf, err := h.Parse("loop.yaml", fmt.Appendf(nil, `
settings: {lua: {timeout_seconds: 60}}
nodes:
  - name: loop
    run: |
      local params, last = state.params
      for i = 1, %d do last = tea.action("echo.back", params) end
      return {last = last ~= nil}
`, calls), host.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { wf.Close() })
	echo := plugproc.BareEcho(b)
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
			var through, alone []time.Duration
			for b.Loop() {
				began := time.Now()
				res, err := wf.Run(b.Context(), host.RunOptions{Input: map[string]any{"params": c.params}})
				if err != nil || res.Status != flow.Done {
					b.Fatal(err, res.Err)
				}
				through = append(through, time.Since(began)/calls)
				b.StopTimer()
				began = time.Now()
				for range calls {
					if _, err := echo(c.params); err != nil {
						b.Fatal(err)
					}
				}
				alone = append(alone, time.Since(began)/calls)
				b.StartTimer()
			}
			slices.Sort(through)
			slices.Sort(alone)
			tea, bare := through[len(through)/2], alone[len(alone)/2]
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(tea), "median-ns/call")
			b.ReportMetric(float64(bare), "bare-median-ns/call")
			b.ReportMetric(float64(tea)/float64(bare), "x-bare")
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

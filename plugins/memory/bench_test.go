package memory_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// subject is an opened memory that a benchmark calls.
type subject struct{ teatest.Instance }

func (s subject) call(b *testing.B, action string, params any) *tea.Response {
	b.Helper()
	answer, err := s.Invoke(b.Context(), &tea.Request{Action: action, Params: tea.ValuePayload(params), Host: &teatest.Host{}})
	if err != nil {
		b.Fatalf("%s: %v", action, err)
	}
	return answer
}

// settingsOf returns settings for an engine, "" = the default one.
func settingsOf(b *testing.B, engine, dir string) tea.Settings {
	b.Helper()
	settings := map[string]any{"path": dir}
	if engine != "" {
		settings["engine"] = engine
	}
	text, err := json.Marshal(settings)
	if err != nil {
		b.Fatal(err)
	}
	return tea.Settings{"memory": text}
}

func openOn(b *testing.B, target teatest.Target, engine string) subject {
	b.Helper()
	s, end := openIn(b, target, engine, b.TempDir())
	b.Cleanup(end)
	return s
}

// openIn opens the memory in a folder.
func openIn(b *testing.B, target teatest.Target, engine, dir string) (s subject, end func()) {
	b.Helper()
	instance, err := target.Open(b.Context(), settingsOf(b, engine, dir))
	if err != nil {
		b.Fatal(err)
	}
	return subject{instance}, func() {
		if err := instance.Close(); err != nil {
			b.Error(err)
		}
	}
}

func benchEngines() []string {
	if duckdb.Available {
		return []string{"sqlite", "duckdb"}
	}
	return []string{"sqlite"}
}

// plugin builds the plugin once and starts it.
func plugin(b *testing.B) *teatest.Process {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "tea-plugin-memory")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "./cmd/tea-plugin-memory").CombinedOutput(); err != nil {
		b.Fatalf("build the plugin: %v\n%s", err, out)
	}
	process, err := teatest.Start(b.Context(), exec.CommandContext(context.WithoutCancel(b.Context()), binary), os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(process.Close)
	return process
}

// each runs a benchmark for each engine, inside this process and through a
// plugin process.
func each(b *testing.B, run func(b *testing.B, s subject)) {
	b.Helper()
	process := plugin(b)
	for _, engine := range benchEngines() {
		b.Run(engine+"/linked", func(b *testing.B) { run(b, openOn(b, teatest.Linked(memory.Bundle()), engine)) })
		b.Run(engine+"/plugin", func(b *testing.B) { run(b, openOn(b, process, engine)) })
	}
}

// medians times each call and reports the median.
func medians(b *testing.B, call func()) {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		times = append(times, took(call))
	}
	b.ReportMetric(float64(median(times)), "median-ns/op")
}

func took(call func()) time.Duration {
	start := time.Now()
	call()
	return time.Since(start)
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
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

func settingsOf(b *testing.B, engine string) tea.Settings {
	b.Helper()
	text, err := json.Marshal(map[string]any{"engine": engine, "path": b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	return tea.Settings{"memory": text}
}

func openOn(b *testing.B, target teatest.Target, engine string) subject {
	b.Helper()
	instance, err := target.Open(b.Context(), settingsOf(b, engine))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := instance.Close(); err != nil {
			b.Error(err)
		}
	})
	return subject{instance}
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

// BenchmarkStart is from the start of the process to its first answer.
func BenchmarkStart(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "tea-plugin-memory")
	for name, build := range map[string][]string{"full": {"build", "-o", binary}, "lite": {"build", "-tags", "lite", "-o", binary}} {
		if name == "full" && !duckdb.Available {
			continue
		}
		cmd := exec.CommandContext(b.Context(), "go", append(build, "./cmd/tea-plugin-memory")...)
		if name == "lite" {
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("build the plugin: %v\n%s", err, out)
		}
		b.Run(name, func(b *testing.B) {
			var resident int64
			medians(b, func() { resident = startOnce(b, binary) })
			b.ReportMetric(float64(resident)/(1<<20), "MB-resident")
		})
	}
}

// startOnce starts a plugin, stores something, and gives its resident memory.
func startOnce(b *testing.B, binary string) int64 {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), binary)
	process, err := teatest.Start(b.Context(), cmd, os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	defer process.Close()
	instance, err := process.Open(b.Context(), settingsOf(b, ""))
	if err != nil {
		b.Fatal(err)
	}
	subject{instance}.call(b, "ltm.store", map[string]any{"key": "a", "value": 1})
	resident := residentMemory(b, cmd.Process.Pid)
	if err := instance.Close(); err != nil {
		b.Fatal(err)
	}
	return resident
}

func residentMemory(b *testing.B, pid int) int64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Skip("no /proc here:", err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		b.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
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

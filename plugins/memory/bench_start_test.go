package memory_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// BenchmarkStart is from the start of the process to its first answer, which
// is that something new is on the disk. As with a host, the manifest is known.
// median-ns is a start on a folder that is not there yet, again-ns one on the
// folder that it has left; ready-ns is until the plugin takes calls, and
// configured-ns until it has its settings.
func BenchmarkStart(b *testing.B) {
	for _, build := range []struct {
		name, tags, cgo string
	}{{"full", "grpcnotrace", "1"}, {"lite", "grpcnotrace,lite", "0"}} {
		if build.name == "full" && !duckdb.Available {
			continue
		}
		binary := released(b, build.tags, build.cgo)
		manifest := manifestOf(b, binary)
		b.Run(build.name, func(b *testing.B) {
			var first, again starts
			for b.Loop() {
				dir := filepath.Join(b.TempDir(), "memory")
				first.once(b, binary, manifest, dir)
				again.once(b, binary, manifest, dir)
			}
			b.ReportMetric(float64(median(first.answered)), "median-ns/op")
			b.ReportMetric(float64(median(again.answered)), "again-ns/op")
			b.ReportMetric(float64(median(first.ready)), "ready-ns/op")
			b.ReportMetric(float64(median(first.configured)), "configured-ns/op")
			b.ReportMetric(float64(max(first.resident, again.resident))/megabyte, "MB-resident")
		})
	}
}

const megabyte = 1 << 20

// released builds the plugin as scripts/build does.
func released(b *testing.B, tags, cgo string) string {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "tea-plugin-memory")
	cmd := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", "-s -w", "-o", binary, "./cmd/tea-plugin-memory")
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build the plugin: %v\n%s", err, out)
	}
	return binary
}

func manifestOf(b *testing.B, binary string) tea.Manifest {
	b.Helper()
	process, err := teatest.Start(b.Context(), exec.CommandContext(b.Context(), binary), os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	defer process.Close()
	manifest, err := process.Describe(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return manifest
}

// starts are the times since the start of a process at which it came to
// something, and the most memory that one had.
type starts struct {
	ready, configured, answered []time.Duration
	resident                    int64
}

// once starts the plugin, stores something and ends it.
func (s *starts) once(b *testing.B, binary string, manifest tea.Manifest, dir string) {
	b.Helper()
	settings := settingsOf(b, "", dir)
	began := time.Now()
	cmd := exec.CommandContext(b.Context(), binary)
	process, err := teatest.StartKnown(b.Context(), cmd, os.Stderr, manifest)
	if err != nil {
		b.Fatal(err)
	}
	defer process.Close()
	s.ready = append(s.ready, time.Since(began))
	instance, err := process.Open(b.Context(), settings)
	if err != nil {
		b.Fatal(err)
	}
	s.configured = append(s.configured, time.Since(began))
	subject{instance}.call(b, "ltm.store", map[string]any{"key": "a", "value": began.UnixNano()})
	s.answered = append(s.answered, time.Since(began))
	s.resident = max(s.resident, residentMemory(b, cmd.Process.Pid))
	if err := instance.Close(); err != nil {
		b.Fatal(err)
	}
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

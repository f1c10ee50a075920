package graph_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/graph"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// released is the plugin as scripts/build makes it.
type released struct {
	binary   string
	manifest tea.Manifest
}

func release(b *testing.B) *released {
	b.Helper()
	r := &released{binary: filepath.Join(b.TempDir(), "tea-plugin-graph")}
	tags := "grpcnotrace,nethttpomithttp2"
	if slices.Contains(graph.Available(), "cozo") {
		tags += ",cozo"
	}
	cmd := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", "-s -w", "-o", r.binary, "./cmd/tea-plugin-graph")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build the plugin: %v\n%s", err, out)
	}
	process, err := teatest.Start(b.Context(), exec.CommandContext(b.Context(), r.binary), os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	defer process.Close()
	if r.manifest, err = process.Describe(b.Context()); err != nil {
		b.Fatal(err)
	}
	return r
}

// use calls f with a graph in a process that is started for it, and returns the
// memory of the process after it.
func (r *released) use(b *testing.B, backend, dir string, f func(g *opened)) (resident float64) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), r.binary)
	process, err := teatest.StartKnown(b.Context(), cmd, os.Stderr, r.manifest)
	if err != nil {
		b.Fatal(err)
	}
	defer process.Close()
	instance, err := process.Open(b.Context(), tea.Settings{"graph": encode(b, object{"backend": backend, "path": dir})})
	if err != nil {
		b.Fatal(err)
	}
	f(&opened{t: b, instance: instance, host: &teatest.Host{}})
	resident = residentMemory(b, cmd.Process.Pid)
	if err := instance.Close(); err != nil {
		b.Fatal(err)
	}
	return resident
}

// residentMemory is in MB.
func residentMemory(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Skip("no /proc here:", err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		b.Fatal(err)
	}
	return float64(resident*int64(os.Getpagesize())) / (1 << 20)
}

// BenchmarkProcess is the plugin in a process of its own with the usual graph:
// from its start to the first answer, and its memory after some traversals and
// contexts.
func BenchmarkProcess(b *testing.B) {
	plugin := release(b)
	eachBackend(b, func(b *testing.B, backend string) {
		dir := filepath.Join(b.TempDir(), "graph")
		plugin.use(b, backend, dir, func(g *opened) { g.fill(benchNodes, benchEdges, true) })
		var times []time.Duration
		for i := 0; b.Loop(); i++ {
			began := time.Now()
			plugin.use(b, backend, dir, func(g *opened) {
				g.hops(i, benchNodes, 1)
				times = append(times, time.Since(began))
			})
		}
		resident := plugin.use(b, backend, dir, func(g *opened) {
			for i := range 200 {
				g.hops(i, benchNodes, 3)
				g.question(i, benchNodes)
			}
		})
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2]), "median-ns/op")
		b.ReportMetric(resident, "MB-resident")
	})
}

// BenchmarkGrowth has the same relations per entity in graphs of several sizes.
func BenchmarkGrowth(b *testing.B) {
	eachBackend(b, func(b *testing.B, backend string) {
		for _, nodes := range []int{1_000, 10_000, 100_000} {
			g := openBench(b, backend)
			g.fill(nodes, 5*nodes, true)
			run := func(name string, f func(i int)) {
				b.Run(fmt.Sprintf("%d/%s", nodes, name), func(b *testing.B) {
					for i := 0; b.Loop(); i++ {
						f(i)
					}
				})
			}
			run("2hops", func(i int) { g.hops(i, nodes, 2) })
			run("context", func(i int) { g.question(i, nodes) })
			run("store", func(i int) {
				g.call("store_entity", object{"entity_id": id(nodes + i), "properties": object{"n": int64(i)}, "text": "Sensor of a line."})
			})
		}
	})
}

// BenchmarkMillion is a graph with 200,000 entities and a million relations.
func BenchmarkMillion(b *testing.B) {
	const nodes, edges = 200_000, 1_000_000
	eachBackend(b, func(b *testing.B, backend string) {
		settings := object{"graph": object{"backend": backend, "path": b.TempDir()}}
		g := openWith(b, settings)
		g.needLibrary()
		g.fill(nodes, edges, false)
		if err := g.instance.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run("open", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				g := openWith(b, settings)
				g.hops(i, nodes, 1)
				if err := g.instance.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("2hops", func(b *testing.B) {
			g := openWith(b, settings)
			for i := 0; b.Loop(); i++ {
				g.hops(i, nodes, 2)
			}
		})
	})
}

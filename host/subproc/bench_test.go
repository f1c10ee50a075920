package subproc

import (
	"slices"
	"testing"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc/health/grpc_health_v1"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// BenchmarkRoundTrip is one small call, host to plugin and back, in turns with
// gRPC's health check over go-plugin's connection to the same process: what a
// call costs before tea adds anything.
func BenchmarkRoundTrip(b *testing.B) {
	inst := open(b, "crash")
	req := &tea.Request{
		Action: "crash.echo", Params: tea.ValuePayload(map[string]any{"text": "hello", "n": int64(1)}),
		Call: tea.Call{RunID: "run", Node: "node", Attempt: 1, IdempotencyKey: "key"}, Host: &teatest.Host{},
	}
	if _, err := inst.Invoke(b.Context(), req); err != nil {
		b.Fatal(err)
	}
	protocol, err := inst.supervisor.running().process.client.Client()
	if err != nil {
		b.Fatal(err)
	}
	health := grpc_health_v1.NewHealthClient(protocol.(*plugin.GRPCClient).Conn)
	const turn = 50 // calls of a kind, one after the other
	var calls, bare []time.Duration
	took := func(call func() error) time.Duration {
		began := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	for i := 0; b.Loop(); i++ {
		calls = append(calls, took(func() error { _, err := inst.Invoke(b.Context(), req); return err }))
		if i%turn != 0 {
			continue
		}
		b.StopTimer()
		for range turn {
			bare = append(bare, took(func() error {
				_, err := health.Check(b.Context(), &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
				return err
			}))
		}
		b.StartTimer()
	}
	slices.Sort(calls)
	slices.Sort(bare)
	median, before := calls[len(calls)/2], bare[len(bare)/2]
	b.ReportMetric(float64(median), "median-ns/op")
	b.ReportMetric(float64(before), "bare-median-ns/op")
	b.ReportMetric(float64(median-before), "added-ns/op")
}

// BenchmarkStart is a plugin's whole life: start, one call, shutdown.
func BenchmarkStart(b *testing.B) {
	dir, cache := install(b, "probe"), b.TempDir()
	discover(b, Options{Dirs: []string{dir}, CacheDir: cache})
	for b.Loop() {
		set, _, err := find(b.Context(), Options{Dirs: []string{dir}, CacheDir: cache})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := call(b.Context(), openIn(b, set, "probe"), "probe.echo", nil); err != nil {
			b.Fatal(err)
		}
		if err := set.Shutdown(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDiscover is what start-up pays for a plugin with a cached manifest.
func BenchmarkDiscover(b *testing.B) {
	dir, cache := install(b, "probe"), b.TempDir()
	discover(b, Options{Dirs: []string{dir}, CacheDir: cache})
	for b.Loop() {
		if _, _, err := find(b.Context(), Options{Dirs: []string{dir}, CacheDir: cache}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWatch is one look at the files of four plugins, as a host does once
// per second.
func BenchmarkWatch(b *testing.B) {
	set, _ := discoverStored(b, Options{Dirs: []string{install(b, "probe", "crash", "echo", "numb")}, Standard: []string{"/usr/lib/tea/plugins"}})
	for b.Loop() {
		set.fingerprint()
	}
}

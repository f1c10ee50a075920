package plugproc

import (
	"testing"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc/health/grpc_health_v1"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// BenchmarkRoundTrip is one small call, host to plugin and back.
func BenchmarkRoundTrip(b *testing.B) {
	inst := open(b, "crash")
	req := &tea.Request{
		Action: "crash.echo", Params: tea.ValuePayload(map[string]any{"text": "hello", "n": int64(1)}),
		Call: tea.Call{RunID: "run", Node: "node", Attempt: 1, IdempotencyKey: "key"}, Host: &teatest.Host{},
	}
	ctx := b.Context()
	for b.Loop() {
		if _, err := inst.Invoke(ctx, req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBareCall is gRPC's health check over go-plugin's connection to the
// same process: what a call costs before tea adds anything.
func BenchmarkBareCall(b *testing.B) {
	inst := open(b, "crash")
	if _, err := call(b.Context(), inst, "crash.echo", nil); err != nil {
		b.Fatal(err)
	}
	protocol, err := inst.supervisor.running().process.client.Client()
	if err != nil {
		b.Fatal(err)
	}
	health := grpc_health_v1.NewHealthClient(protocol.(*plugin.GRPCClient).Conn)
	ctx := b.Context()
	for b.Loop() {
		if _, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is a plugin's whole life: start, one call, shutdown.
func BenchmarkStart(b *testing.B) {
	dir, cache := install(b, "probe"), b.TempDir()
	discover(b, Options{Dirs: []string{dir}, CacheDir: cache})
	for b.Loop() {
		set, _, err := Discover(b.Context(), Options{Dirs: []string{dir}, CacheDir: cache})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := call(b.Context(), openIn(b, set, "probe"), "probe.echo", nil); err != nil {
			b.Fatal(err)
		}
		if err := set.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDiscover is what start-up pays for a plugin with a cached manifest.
func BenchmarkDiscover(b *testing.B) {
	dir, cache := install(b, "probe"), b.TempDir()
	discover(b, Options{Dirs: []string{dir}, CacheDir: cache})
	for b.Loop() {
		if _, _, err := Discover(b.Context(), Options{Dirs: []string{dir}, CacheDir: cache}); err != nil {
			b.Fatal(err)
		}
	}
}

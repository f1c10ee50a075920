package plugproc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/internal/plugproc"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
)

// echoMethod is the one method of the bare plugin: JSON in, JSON out.
const echoMethod = "/bare.Echo/Echo"

// bareHandshake is what a user of go-plugin writes.
var bareHandshake = plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "BARE_PLUGIN", MagicCookieValue: "echo"}

// bare is a plugin as go-plugin's users write it, with JSON at both ends.
type bare struct{ plugin.NetRPCUnsupportedPlugin }

// serveBareEcho is the bare plugin's main.
func serveBareEcho() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: bareHandshake, Plugins: plugin.PluginSet{"echo": bare{}}, Logger: hclog.NewNullLogger(),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return plugin.DefaultGRPCServer(append(opts, grpc.MaxRecvMsgSize(64<<20), grpc.MaxSendMsgSize(64<<20)))
		},
	})
}

func (bare) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "bare.Echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Echo",
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.BytesValue)
			if err := decode(in); err != nil {
				return nil, err
			}
			var params map[string]any
			if err := json.Unmarshal(in.Value, &params); err != nil {
				return nil, err
			}
			out, err := json.Marshal(params)
			return wrapperspb.Bytes(out), err
		},
	}}}, nil)
	return nil
}

func (bare) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// bareEcho calls the bare plugin with a value.
func bareEcho(b *testing.B) func(params map[string]any) (map[string]any, error) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bare-echo")
	if err := os.Symlink(executable(b), path); err != nil {
		b.Fatal(err)
	}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: bareHandshake, Plugins: plugin.PluginSet{"echo": bare{}}, Cmd: exec.Command(path), //nolint:noctx // go-plugin ends it
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20))},
	})
	b.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	conn, err := protocol.Dispense("echo")
	if err != nil {
		b.Fatal(err)
	}
	return func(params map[string]any) (map[string]any, error) {
		in, err := json.Marshal(params)
		if err != nil {
			return nil, err
		}
		out := new(wrapperspb.BytesValue)
		if err := conn.(*grpc.ClientConn).Invoke(b.Context(), echoMethod, wrapperspb.Bytes(in), out); err != nil {
			return nil, err
		}
		var result map[string]any
		return result, json.Unmarshal(out.Value, &result)
	}
}

func executable(b *testing.B) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	return self
}

// serveEcho is the same plugin for tea.
func serveEcho() {
	serve.Main(tea.Bundle{Name: "echo", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("echo.back", "Answers with its parameters.", func(_ context.Context, _ *tea.Request, p map[string]any) (map[string]any, error) {
			return p, nil
		}),
	}})
}

// BenchmarkLuaLoop is a call of a plugin's action in a loop of a Lua node, in
// turns with the same call through go-plugin alone with encoding/json at both
// ends. The ratio of the medians is what tea promises.
func BenchmarkLuaLoop(b *testing.B) {
	const calls = 20 // in one run
	dir := b.TempDir()
	if err := os.Symlink(executable(b), filepath.Join(dir, "tea-plugin-echo")); err != nil {
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
	echo := bareEcho(b)
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
				if err != nil || res.Status != host.Done {
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

// The test binary is also the benchmark's plugins.
func init() {
	plugproc.Fakes["tea-plugin-echo"] = serveEcho
	plugproc.Fakes["bare-echo"] = serveBareEcho
}

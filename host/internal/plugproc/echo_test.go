package plugproc

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

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
	if err := os.Symlink(ownPath(b), path); err != nil {
		b.Fatal(err)
	}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: bareHandshake, Plugins: plugin.PluginSet{"echo": bare{}}, Cmd: exec.Command(path),
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

func ownPath(b *testing.B) string {
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

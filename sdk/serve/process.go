package serve

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/callstream"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
)

// serve offers the bundle to the host that started this process, until the host shuts
// it down.
//
// It replaces go-plugin's Serve, which also links another protocol that looks up
// methods by name, so that the linker keeps every exported method of every type, a
// tenth of the binary. That Serve also replaces the output streams of the process by
// pipes, which lose the last output before a crash.
func serve(bundle *tea.Bundle) error {
	logTo(os.Stderr)
	listener, err := listen(os.Getenv(plugin.EnvUnixSocketDir))
	if err != nil {
		return fmt.Errorf("open the plugin's socket: %w", err)
	}
	s := newServer(bundle)
	var g *grpc.Server
	protocol := plugin.GRPCServer{
		Plugins: plugin.PluginSet{handshake.Service: &adapter{server: s}},
		Server: func(opts []grpc.ServerOption) *grpc.Server {
			g = grpc.NewServer(append(opts, serverOptions()...)...)
			return g
		},
		Stdout: emptyOutput{}, Stderr: emptyOutput{},
	}
	if err := protocol.Init(); err != nil {
		return fmt.Errorf("make the server: %w", err)
	}
	// Ctrl-C reaches the whole process group; the host decides when to end.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	watchParent(s)
	go trimWhenIdle(&s.calls)
	// This line tells the host where to connect. go-plugin's guide for plugins
	// in other languages describes it.
	if _, err := fmt.Fprintf(os.Stdout, "%d|%d|unix|%s|grpc\n", plugin.CoreProtocolVersion, tea.ProtocolVersion, listener.Addr()); err != nil {
		return fmt.Errorf("print the handshake: %w", err)
	}
	return g.Serve(listener)
}

// listen opens a socket in dir, or in the directory for temporary files.
func listen(dir string) (net.Listener, error) {
	name, err := os.CreateTemp(dir, "plugin")
	if err != nil {
		return nil, err
	}
	path := name.Name()
	if err := name.Close(); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil { // the socket creates its file
		return nil, err
	}
	return new(net.ListenConfig).Listen(context.Background(), "unix", path)
}

func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.NumStreamWorkers(callstream.Workers),
		grpc.MaxRecvMsgSize(handshake.MaxMessage), grpc.MaxSendMsgSize(handshake.MaxMessage),
		grpc.InitialWindowSize(handshake.Window), grpc.InitialConnWindowSize(handshake.Window),
	}
}

// emptyOutput is an empty output stream: a plugin's output goes to the host
// directly.
type emptyOutput struct{}

// Read never returns.
func (emptyOutput) Read([]byte) (int, error) { select {} }

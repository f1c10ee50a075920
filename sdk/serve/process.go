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
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
)

// serve offers the bundle to the host that started this process, until the
// host shuts it down.
//
// go-plugin's own Serve would do, but links its other protocol as well, which
// looks methods up by name; then the linker must keep every exported method
// of every type, a tenth of the binary. It also replaces the process's output
// streams by pipes, in which the last words of a crash are lost.
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
		Stdout: silence{}, Stderr: silence{},
	}
	if err := protocol.Init(); err != nil {
		return fmt.Errorf("make the server: %w", err)
	}
	// The host's Ctrl-C comes here, too; it is the host that says when to end.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	go watchParent(s)
	// This line tells the host where to connect. Its form is described in
	// go-plugin's guide for plugins in other languages.
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
	if err := os.Remove(path); err != nil { // the socket makes its file itself
		return nil, err
	}
	return new(net.ListenConfig).Listen(context.Background(), "unix", path)
}

// workers are the goroutines that wait for calls. A new one for each call
// would grow its stack each time, which costs a small call a tenth of its time;
// calls beyond these get goroutines of their own.
const workers = 4

func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.NumStreamWorkers(workers),
		grpc.MaxRecvMsgSize(handshake.MaxMessage), grpc.MaxSendMsgSize(handshake.MaxMessage),
		grpc.InitialWindowSize(handshake.Window), grpc.InitialConnWindowSize(handshake.Window),
	}
}

// silence is an output stream that says nothing: a plugin's output goes to the
// host directly.
type silence struct{}

// Read waits for ever.
func (silence) Read([]byte) (int, error) { select {} }

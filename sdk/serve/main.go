package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
)

// Main serves the bundle until the host lets go of it, and ends the process.
//
// Started by hand it says what it is; --manifest prints the bundle's manifest
// as JSON and --version its name and version. A bundle with a mistake in it
// ends the process at once with a message on stderr.
//
// Main owns the process: it sets slog's default logger, so that records
// logged with a call's context reach the run's log and others the host's.
func Main(bundle tea.Bundle) {
	if err := bundle.Check(); err != nil {
		fmt.Fprintln(os.Stderr, "tea plugin:", err)
		os.Exit(1)
	}
	if os.Getenv(handshake.CookieKey) != handshake.CookieValue {
		os.Exit(byHand(&bundle, os.Args[1:], os.Stdout, os.Stderr))
	}
	run(&bundle)
	os.Exit(0)
}

// run serves until the host shuts the plugin down.
func run(bundle *tea.Bundle) {
	// go-plugin puts pipes of its own in the place of these two. What sits in
	// those pipes is lost when the process dies, last words above all, so the
	// server puts the real ones back.
	stdio := stdio{out: os.Stdout, err: os.Stderr}
	logTo(stdio.err)
	s := newServer(bundle, stdio.restore)
	go watchParent(s)
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  tea.ProtocolVersion,
			MagicCookieKey:   handshake.CookieKey,
			MagicCookieValue: handshake.CookieValue,
		},
		Plugins: plugin.PluginSet{handshake.Service: &adapter{server: s}},
		Logger:  hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: stdio.err, JSONFormat: true}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, serverOptions()...)...)
		},
	})
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

// stdio are the process's own output streams.
type stdio struct{ out, err *os.File }

func (s stdio) restore() { os.Stdout, os.Stderr = s.out, s.err }

// byHand answers somebody who started the plugin without a host and gives
// the exit code.
func byHand(bundle *tea.Bundle, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 {
		switch args[0] {
		case "--manifest", "-manifest":
			enc := json.NewEncoder(stdout)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(bundle.Manifest()); err != nil {
				fmt.Fprintln(stderr, "tea plugin: write the manifest:", err)
				return 1
			}
			return 0
		case "--version", "-version":
			fmt.Fprintln(stdout, "tea-plugin-"+bundle.Name, bundle.Version)
			return 0
		}
	}
	fmt.Fprintf(stderr, `This is tea-plugin-%s %s, a plugin with actions for tea workflows.
It is not started by hand: put it into ./plugins (or a directory given by
--plugins) and tea starts it when a workflow uses one of its actions.

  --manifest   print the actions with their parameters as JSON
  --version    print name and version
`, bundle.Name, bundle.Version)
	return 2
}

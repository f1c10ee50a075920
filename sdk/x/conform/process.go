package conform

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/childproc"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// Process is a plugin that runs as a separate process. Unlike under a host, it is started
// without supervision, limits or a clean environment.
type Process struct {
	running
	manifest  tea.Manifest
	instances atomic.Int64

	// start is the given command, to start it again.
	start  *exec.Cmd
	output io.Writer
}

// running is a process with its connection.
type running struct {
	plugin *plugin.Client
	runner *processRunner
	conn   *grpc.ClientConn
	client *wire.Client
	parent *os.File
	// end kills the process group. Child processes of a wrapper can hold its output
	// open, and go-plugin waits for the end of the output.
	end context.CancelFunc
}

// startTimeout is generous: a plugin in a scripting language on a busy machine can take
// seconds.
const startTimeout = 2 * time.Minute

// Start runs the command as a plugin and sets its Process; the command is not used
// afterwards. output receives stderr of the process. The caller ends it with Close.
func Start(ctx context.Context, cmd *exec.Cmd, output io.Writer) (*Process, error) {
	return launch(ctx, cmd, output, nil)
}

// StartKnown is [Start] for a plugin whose manifest is known. Like a host with a stored
// manifest, it does not ask for the manifest, only whether the plugin accepts calls.
func StartKnown(ctx context.Context, cmd *exec.Cmd, output io.Writer, manifest tea.Manifest) (*Process, error) {
	return launch(ctx, cmd, output, &manifest)
}

func launch(ctx context.Context, cmd *exec.Cmd, output io.Writer, known *tea.Manifest) (*Process, error) {
	watched, parent, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	defer watched.Close()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, end)()
	defer time.AfterFunc(startTimeout+time.Second, end).Stop()
	p := &Process{running: running{parent: parent, end: end}, output: output, start: &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Environ(), Dir: cmd.Dir}}
	given := cmd
	cmd = p.command(life)
	childproc.Group(cmd)
	cmd.Env = append(cmd.Env, wire.PassParent(cmd, watched))
	cmd.Cancel = func() error { return childproc.KillGroup(cmd.Process) }
	p.runner = newRunner(cmd)
	p.plugin = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: tea.ProtocolVersion, MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue},
		Plugins:          plugin.PluginSet{wire.Service: &dispenser{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true, // the command already has the environment
		RunnerFunc: func(_ hclog.Logger, prepared *exec.Cmd, _ string) (runner.Runner, error) {
			cmd.Env = append(cmd.Env, prepared.Env...)
			return p.runner, nil
		},
		StartTimeout:    startTimeout,
		Stderr:          output,
		SyncStdout:      output,
		SyncStderr:      output,
		Logger:          hclog.NewNullLogger(),
		GRPCDialOptions: wire.DialOptions(),
	})
	if err := p.connect(ctx, known); err != nil {
		p.Close()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	given.Process = cmd.Process
	return p, nil
}

func (p *Process) connect(ctx context.Context, known *tea.Manifest) error {
	protocol, err := p.plugin.Client()
	if err != nil {
		return p.runner.reason(err)
	}
	raw, err := protocol.Dispense(wire.Service)
	if err != nil {
		return err
	}
	d := raw.(*dispenser)
	p.conn = d.conn
	p.client = wire.Connect(d.conn, d.broker)
	p.client.ShareStream()
	if known != nil {
		p.manifest = *known
		return p.client.Health(ctx)
	}
	p.manifest, err = p.client.Describe(ctx)
	return err
}

// command returns the command of the process, to start it again.
func (p *Process) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.start.Path, p.start.Args[1:]...)
	cmd.Env, cmd.Dir = slices.Clone(p.start.Env), p.start.Dir
	return cmd
}

// another starts a second process of the same command. The caller closes it.
func (p *Process) another(ctx context.Context) (*Process, error) {
	return launch(ctx, p.command(context.WithoutCancel(ctx)), p.output, &p.manifest)
}

// restart replaces a process that has ended.
func (p *Process) restart(ctx context.Context) error {
	next, err := p.another(ctx)
	if err != nil {
		return err
	}
	p.Close()
	p.running = next.running
	return nil
}

// ended reports whether the process has ended.
func (p *Process) ended() bool { return p.plugin.Exited() }

// Manifest returns the manifest with which the plugin started.
func (p *Process) Manifest() tea.Manifest { return p.manifest }

// Close shuts the plugin down and waits until the process has ended.
func (p *Process) Close() {
	if p.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = p.client.Shutdown(ctx, time.Second) // otherwise it is killed
	}
	p.end()
	p.plugin.Kill()
	if p.client != nil {
		p.client.Close()
	}
	p.parent.Close()
}

// Conn returns the connection, for messages that the client never sends.
func (p *Process) Conn() grpc.ClientConnInterface { return p.conn }

// Describe returns the manifest.
func (p *Process) Describe(ctx context.Context) (tea.Manifest, error) { return p.client.Describe(ctx) }

// Open opens an instance in the process.
func (p *Process) Open(ctx context.Context, settings tea.Settings) (Instance, error) {
	return p.Import(ctx, settings, "")
}

// Import is Open with the state that the instance of another process has exported to a
// file, see [Exporter].
func (p *Process) Import(ctx context.Context, settings tea.Settings, path string) (Instance, error) {
	declared := tea.Settings{}
	for key := range p.manifest.Settings {
		if raw, ok := settings[key]; ok {
			declared[key] = raw
		}
	}
	id := strconv.FormatInt(p.instances.Add(1), 10)
	if err := p.client.Import(ctx, id, declared, path); err != nil {
		return nil, err
	}
	return &remote{process: p, id: id}, nil
}

// Exporter is implemented by the instances of a [Process].
type Exporter interface {
	// Export writes the state of the instance to a new file and closes the
	// instance, as in a swap of the plugin.
	Export(ctx context.Context, path string) error
}

// remote is an instance in a process.
type remote struct {
	process *Process
	id      string
}

func (r *remote) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	info := r.process.manifest.Find(req.Action)
	return r.process.client.Invoke(ctx, r.id, req, info != nil && info.Streaming)
}

// Export implements Exporter.
func (r *remote) Export(ctx context.Context, path string) error {
	return r.process.client.Export(ctx, r.id, path)
}

func (r *remote) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return r.process.client.Release(ctx, r.id)
}

// dispenser takes the connection and the broker from go-plugin.
type dispenser struct {
	plugin.NetRPCUnsupportedPlugin
	broker *plugin.GRPCBroker
	conn   *grpc.ClientConn
}

// GRPCServer is not used: the plugin is the server.
func (*dispenser) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return fmt.Errorf("a host is not a plugin")
}

// GRPCClient keeps the connection and the broker.
func (*dispenser) GRPCClient(_ context.Context, broker *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &dispenser{broker: broker, conn: conn}, nil
}

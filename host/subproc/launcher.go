package subproc

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	goplugin "github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/the-edge-agent/tea/host/internal/digest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/childproc"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// launcher starts plugin processes for one host. With the first process it opens the
// resources that all of them share: a directory for sockets, the thread that forks, and
// the guard.
type launcher struct {
	options Options

	mu      sync.Mutex
	dir     *filelock.Dir
	forker  *forker
	guard   *childproc.Guard // can be nil
	mark    string           // begins the marks of its processes
	marked  int              // processes so far
	cgroups *cgroups         // can be nil
	// status returns the status to report; nil reports nothing.
	status   func() []Status
	reporter *reporter        // can be nil
	limits   []map[string]any // settings.plugins of the workflows
}

// open opens the shared resources.
func (l *launcher) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir != nil {
		return nil
	}
	// Starting the guard takes about as long as searching a full temporary directory, so
	// both run concurrently.
	groups := newCgroups()
	var guard *childproc.Guard
	var unguarded error
	var starting sync.WaitGroup
	l.mark = processMark + "=" + rand.Text() + "/"
	starting.Go(func() { guard, unguarded = startGuard(l.mark, groups) })
	dir, err := newRunDir(runBases())
	starting.Wait()
	if err != nil {
		guard.Close()
		return err
	}
	if unguarded != nil {
		l.options.Logger.Debug("processes that plugins start may outlive a host that is killed", "error", unguarded)
	}
	l.dir, l.forker, l.guard, l.cgroups = dir, newForker(), guard, groups
	if l.status != nil {
		if l.reporter, err = report(dir.Path, l.status); err != nil {
			l.options.Logger.Warn("the status of plugins is not available to other processes", "error", err)
		}
	}
	return nil
}

// close releases the shared resources. All processes must have ended.
func (l *launcher) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == nil {
		return nil
	}
	l.reporter.close()
	l.guard.Close()
	l.forker.close()
	err := l.dir.Remove()
	l.dir, l.forker, l.guard, l.reporter = nil, nil, nil, nil
	return err
}

// nextMark returns the mark of a process, an entry in its environment.
func (l *launcher) nextMark() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marked++
	return l.mark + strconv.Itoa(l.marked)
}

// needs are the requirements of a plugin's process in its manifest. The zero value is
// for a plugin whose manifest is not known yet.
type needs struct {
	env          []string
	startTimeout time.Duration
	memory       int64
	unknown      bool // the manifest is not known
}

func needsOf(m tea.Manifest) needs {
	return needs{env: m.Env, startTimeout: time.Duration(m.StartTimeoutMS) * time.Millisecond, memory: m.MemoryBytes}
}

// limit adds settings.plugins of another workflow. They apply to processes that start
// afterwards.
func (l *launcher) limit(settings map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.ContainsFunc(l.limits, func(have map[string]any) bool { return value.Equal(have, settings) }) {
		l.limits = append(l.limits, settings)
	}
}

// limitsOf returns the configured limits of a plugin. Workflows share the process, so
// the highest limit applies.
func (l *launcher) limitsOf(name string) Limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	var limits Limits
	for _, settings := range l.limits {
		limits = limits.or(readLimits(settings, name))
	}
	return limits
}

// launch starts the plugin and waits until it accepts calls. command is the file to
// execute: path, or the same binary elsewhere. If the error, a [*tea.Error], is not nil,
// the process has ended.
func (l *launcher) launch(ctx context.Context, name, path, command string, n needs) (*process, error) {
	for replaced, busy := 0, 0; ; {
		p, err := l.start(ctx, name, path, command, n)
		switch {
		case errors.Is(err, errChanged) && replaced < replacedTries: // a backup can have linked it
			replaced++
		case errors.Is(err, syscall.ETXTBSY) && busy < writingTries && backoff.Sleep(ctx, writingWait) == nil:
			busy++
		default:
			return p, err
		}
	}
}

// writingTries and writingWait are the number and the interval of the attempts to start
// a binary that may have just been written. The system does not execute it while it is open
// for writing, even by a process that this one is starting.
const (
	writingTries = 20
	writingWait  = 50 * time.Millisecond
)

func (l *launcher) start(ctx context.Context, name, path, command string, n needs) (*process, error) {
	if l.options.StoredOnly {
		return nil, startError(name, tea.Canceled, "this host starts no plugins")
	}
	if err := l.open(); err != nil {
		return nil, startError(name, tea.InternalError, "%w", err)
	}
	command = withoutLink(command)
	state := digest.State(command)
	if !isOpenFile(command) { // an open file was verified when it had a name
		if err := l.options.verify(name, command); err != nil {
			return nil, startError(name, tea.PermissionDenied, "%w", err)
		}
	}
	set := l.limitsOf(name)
	limits := set.effective(n, l.options.StartTimeout)
	ctx, cancel := context.WithTimeout(ctx, limits.StartTimeout)
	defer cancel()
	logger := l.options.Logger.With("plugin", name)
	out := &output{logger: logger}
	p := &process{name: name, logger: logger, times: l.options.times, limits: limits, began: time.Now(), runner: newRunner(name, path, command, goLimits(set, l.env(n.env)), l.forker, l.guard, out)}
	// A plugin accepts only one host; the manifest is read from another process.
	if socket := l.options.attachment(name); socket != "" && !n.unknown {
		if err := p.attach(socket); err != nil {
			return nil, err
		}
	}
	p.client = plugin.NewClient(l.config(p, 2*limits.StartTimeout)) // the context ends first
	p.runner.limits, p.runner.mark, p.runner.cgroups = limits, l.nextMark(), l.cgroups
	stop := context.AfterFunc(ctx, func() { _ = p.runner.Kill(ctx) }) // go-plugin's own start cannot be canceled
	err := p.connect(ctx)
	if l.options.Verify != nil && err == nil && digest.State(command) != state {
		p.runner.failure.Store(startError(name, tea.PermissionDenied, "%s: %w", path, errChanged))
		err = errChanged
	}
	if stop() && err == nil {
		if p.attached == "" { // a breakpoint is not a fault
			go p.watchHealth()
			go p.watchMemory()
		}
		return p, nil
	}
	reason := p.startFailure(ctx, err)
	p.kill()
	return nil, reason
}

// describe starts a plugin, reads its manifest and stops it.
func (l *launcher) describe(ctx context.Context, b binary) (tea.Manifest, error) {
	slow := time.AfterFunc(slowStart, func() {
		l.options.Logger.Warn("waiting for its manifest", "plugin", b.name)
	})
	defer slow.Stop()
	p, err := l.launch(ctx, b.name, b.path, b.path, needs{unknown: true})
	if err != nil {
		return tea.Manifest{}, err
	}
	defer p.stop(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, l.options.StartTimeout)
	defer cancel()
	return p.wire.Describe(ctx)
}

// Describe starts a binary, reads its manifest and stops it. The file can have any name.
func Describe(ctx context.Context, path string, o Options) (m tea.Manifest, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return m, err
	}
	l := &launcher{options: o.withDefaults()}
	defer l.close() //nolint:errcheck // the manifest has been read
	m, err = l.describe(ctx, binary{name: strings.TrimPrefix(filepath.Base(path), prefix), path: path})
	if err == nil {
		err = m.Check()
	}
	if err == nil {
		err = m.CheckSchemas()
	}
	return m, err
}

var (
	// errReplaced is the error for a binary that was replaced before it ran.
	errReplaced = errors.New("the binary was replaced")

	// errChanged is the error for a file that changed after it was verified. The process
	// may have run other contents.
	errChanged = errors.New("the file changed while it was verified and started")
)

func (l *launcher) env(declared []string) []string {
	level := slog.LevelInfo
	if l.options.Logger.Enabled(context.Background(), slog.LevelDebug) {
		level = slog.LevelDebug
	}
	return append(cleanEnv(os.Environ(), declared, l.options.Env), wire.LogLevel+"="+level.String())
}

func (o Options) verify(name, path string) error {
	if o.Verify == nil {
		return nil
	}
	return o.Verify(name, path)
}

// withoutLink returns the target of a link, because a script finds its files next to
// itself, and a later change of the link must have no effect. A link in /proc is an
// open file, which has no other name.
func withoutLink(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil && !isOpenFile(path) {
		return target
	}
	return path
}

// config hardens go-plugin's defaults.
func (l *launcher) config(p *process, startTimeout time.Duration) *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: tea.ProtocolVersion, MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue},
		Plugins:          plugin.PluginSet{wire.Service: dispenser{process: p}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, sockets string) (goplugin.Runner, error) {
			p.runner.env = append(p.runner.env, cmd.Env...)
			p.sockets = sockets
			return p.runner, nil
		},
		SkipHostEnv:      true,
		StartTimeout:     startTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: l.dir.Path},
		SyncStdout:       p.runner.output.writer("stdout"),
		SyncStderr:       p.runner.output.writer("stderr"),
		Logger:           hclog.NewNullLogger(), // our errors contain everything that it would log
		GRPCDialOptions:  wire.DialOptions(),
	}
}

// dispenser takes the connection and the broker from go-plugin.
type dispenser struct {
	plugin.NetRPCUnsupportedPlugin
	process *process
}

// GRPCServer is not used: the plugin serves.
func (dispenser) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("a host is not a plugin")
}

// GRPCClient returns the client of the protocol.
func (d dispenser) GRPCClient(_ context.Context, broker *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	d.process.wire = wire.Connect(conn, broker)
	d.process.wire.ShareStream()
	return d.process.wire, nil
}

// inheritedVariables are the variables of the host that every plugin gets. Keys and addresses are
// passed in the settings of the workflow; a plugin declares other variables in its
// manifest.
var inheritedVariables = []string{
	// paths
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	// language and time
	"LANG", "LC_ALL", "LC_CTYPE", "TZ",
	// network
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	// limits of the Go runtime
	"GOMAXPROCS", "GOMEMLIMIT", "GOGC",
}

// Environ returns the environment of a plugin that declares the variables, taken from
// this process.
func Environ(declared []string) []string { return cleanEnv(os.Environ(), declared, nil) }

// cleanEnv returns the environment of a plugin, without go-plugin's additions: the
// variables that are passed on, those that the plugin declares, and extra.
func cleanEnv(host, declared, extra []string) []string {
	env := make([]string, 0, len(inheritedVariables)+len(declared)+len(extra))
	for _, entry := range host {
		name, _, ok := strings.Cut(entry, "=")
		if ok && (slices.Contains(inheritedVariables, name) || slices.Contains(declared, name)) {
			env = append(env, entry)
		}
	}
	return append(env, extra...)
}

// processMark is the variable with the mark of a plugin's process, which its child
// processes inherit. It is the first one in the environment, where a grep that stops at
// a zero byte finds it.
const processMark = "TEA_PLUGIN_PROCESS"

// startGuard starts the guard of all plugins. Without a shell there is none; plugins
// then end by the parent-death signal and by watching the host.
func startGuard(mark string, c *cgroups) (*childproc.Guard, error) {
	o := childproc.GuardOptions{Name: "tea-plugin-guard", Mark: mark}
	if c != nil {
		o.ControlGroups = c.prefix
	}
	return childproc.StartGuard(o)
}

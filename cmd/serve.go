package teacmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/trace"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Server is a command that serves the workflows of a directory. It is a struct
// with the flags of the command, which embeds [ServeFlags].
type Server interface {
	// Serve returns when the context of the service is done or nothing is left
	// to serve.
	Serve(s *Service) error
	flags() *ServeFlags
}

// ServerCommand returns a command for [Options.Commands]. grammar returns a new
// struct with its flags, as kong reads them.
func ServerCommand(name, help string, grammar func() Server) Command {
	return Command{command{name: name, help: help, grammar: func() any {
		server := grammar()
		server.flags().server = server
		return server
	}}}
}

// ServeFlags are the argument and the flags of a command that serves workflows.
// They have the same meaning as for `tea run`.
type ServeFlags struct {
	Dir           string `arg:"" help:"Directory of the workflows."`
	CheckpointDir string `short:"c" config:"" placeholder:"DIR" help:"Directory of the runs' checkpoints."`
	Durability    string `config:"" placeholder:"sync" values:"exit,sync,async" help:"When records reach the disk: exit, sync or async. Default: sync."`
	Secrets       string `config:"" placeholder:"JSON|@FILE" help:"Secrets by name."`
	SecretsEnv    string `config:"" placeholder:"PREFIX" help:"Use the environment variables with this prefix as secrets."`
	TraceFile     string `config:"" placeholder:"FILE" help:"Append the runs' spans to this file, one JSON object a line."`

	OTLPEndpoint string            `name:"otlp-endpoint" placeholder:"URL" help:"OpenTelemetry collector that gets the spans of all runs over OTLP/HTTP, instead of the collectors that workflows name. tea serve also sends metrics."`
	OTLPHeader   map[string]string `name:"otlp-header" placeholder:"NAME=SECRET" help:"Header of the requests to the collector; its value is one of --secrets (repeatable)."`
	pluginFlags
	reportFlags

	server Server `kong:"-"`
}

func (f *ServeFlags) flags() *ServeFlags { return f } //nolint:unused // commands of other modules embed ServeFlags

// workflowFiles returns a path in the directory, whose rules for plugins apply.
func (f *ServeFlags) workflowFiles() []string { return []string{filepath.Join(f.Dir, "*.yaml")} }

// Run opens the service and serves.
func (f *ServeFlags) Run(a *app) error {
	info, err := os.Stat(f.Dir)
	switch {
	case err != nil:
		return usageError(unreadable(f.Dir, err))
	case !info.IsDir():
		return usageErrorf("%s is a file; name the directory of the workflows", f.Dir)
	case f.Secrets == "-":
		return usageErrorf("--secrets - reads stdin, which the server uses; write the secrets to a file and pass @FILE")
	}
	a.setReport(f.reportFlags)
	s := &Service{Version: a.version, Log: a.logger(f.reportFlags), app: a, flags: f}
	if s.options, err = f.options(a); err != nil {
		return err
	}
	s.Runs = s.options.CheckpointDir
	a.mask, a.hide = host.NewMask(s.options.Secrets), s.hide
	if s.Host, err = a.openHost(f.pluginFlags, f.reportFlags, startPlugins, host.Options{}); err != nil {
		return err
	}
	defer s.Host.Close()
	ctx, stop := reloadable(a.reload)
	defer stop(nil)
	s.Context = ctx
	go a.plugins.Watch(ctx)
	if err := s.openCollector(); err != nil {
		return err
	}
	defer s.closeCollectors()
	return f.server.Serve(s)
}

// options returns the common options of the runs.
func (f *ServeFlags) options(a *app) (o host.RunOptions, err error) {
	if o.Secrets, err = a.readSecrets(f.Secrets, f.SecretsEnv); err != nil {
		return o, err
	}
	o.Durability = flow.DurabilitySync
	if f.Durability != "" {
		if o.Durability, err = flow.ParseDurability(f.Durability); err != nil {
			return o, usageError(err)
		}
	}
	if o.Durability == flow.DurabilityOff {
		return o, usageErrorf("durability off: the runs of a server need a checkpoint; use exit, async or sync")
	}
	o.Env = environment()
	if o.CheckpointDir = f.CheckpointDir; o.CheckpointDir == "" {
		if o.CheckpointDir, err = a.defaultRunDir(); err != nil {
			return o, fmt.Errorf("find the directory of runs: %w; name one with -c", err)
		}
	}
	if err := writable(o.CheckpointDir); err != nil {
		return o, fmt.Errorf("directory of runs: %w; name another one with -c", err)
	}
	return o, nil
}

// Service runs workflows for a [Server] as `tea run` does, with the plugins,
// secrets and checkpoints of the command line. It is safe for concurrent use.
type Service struct {
	// Context is done after the first SIGINT or SIGTERM.
	Context context.Context
	Host    *host.Host
	// Log masks the secrets of all workflows that were loaded.
	Log     *slog.Logger
	Version string
	// Runs is the directory of runs.
	Runs string
	// DataDir returns the directory for the files of a workflow. If it is nil, they are
	// in the directory of the workflow file.
	DataDir func(workflow string) string
	// Collector is the collector of --otlp-endpoint, or nil.
	Collector *trace.Collector

	app     *app
	flags   *ServeFlags
	options host.RunOptions

	// swapping is locked while a plugin is installed or rolled back.
	swapping sync.Mutex

	mu    sync.Mutex
	masks []host.Mask
	// collectors are the collectors of workflows. Runs share them, so that a slow or
	// unreachable collector does not delay the end of a run.
	collectors collectors
}

// UsageErrorf returns an error of [Server.Serve] for wrong flags.
func UsageErrorf(format string, args ...any) error { return usageErrorf(format, args...) }

// InvalidErrorf returns an error of [Server.Serve] for invalid workflows, whose
// mistakes were logged.
func InvalidErrorf(format string, args ...any) error {
	return &exitError{exitInvalid, fmt.Errorf(format, args...)}
}

// Announce prints a line for the user, unless -q is set.
func (s *Service) Announce(text string) {
	if !s.flags.Quiet {
		fmt.Fprintln(s.app.report, text)
	}
}

// ResumeCommand returns the command line that resumes a run.
func (s *Service) ResumeCommand(run string) string {
	words := []string{"resume", run}
	if s.flags.CheckpointDir != "" {
		words = append(words, "-c", s.flags.CheckpointDir)
	}
	return commandLine(words)
}

// Load loads a workflow file.
func (s *Service) Load(file string) (*host.Workflow, error) {
	wf, err := s.Host.Load(file, host.LoadOptions{DataDir: s.DataDir})
	return s.loaded(wf, err)
}

// Actions identifies the actions of the host and the versions of their bundles. It
// changes when the plugins change.
func (s *Service) Actions() string {
	list, err := s.Host.Actions()
	text := []string{fmt.Sprint(err)}
	for _, a := range list {
		text = append(text, a.Name+" "+a.Version)
	}
	return strings.Join(text, "\n")
}

// LoadRun loads the workflow of a run.
func (s *Service) LoadRun(run *host.RunInfo, view bool) (*host.Workflow, error) {
	wf, err := s.Host.LoadRun(run, host.LoadRunOptions{Secrets: s.options.Secrets, DataDir: s.DataDir, View: view})
	return s.loaded(wf, err)
}

// loaded adds the secrets in the settings of a workflow to those that the log masks.
func (s *Service) loaded(wf *host.Workflow, err error) (*host.Workflow, error) {
	if err != nil {
		return nil, err
	}
	mask, err := s.Mask(wf)
	if err != nil {
		return nil, errors.Join(err, wf.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The masks of earlier versions stay: their runs may continue.
	if !slices.ContainsFunc(s.masks, mask.Equal) {
		s.masks = append(s.masks, mask)
	}
	return wf, nil
}

// Hide returns a text with *** in place of the secrets of all workflows that were
// loaded.
func (s *Service) Hide(text string) string { return s.hide(text) }

func (s *Service) hide(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, mask := range s.masks {
		text = mask.Text(text)
	}
	return text
}

// Mask returns the mask for the results of runs of a workflow.
func (s *Service) Mask(wf *host.Workflow) (host.Mask, error) { return wf.Mask(s.options.Secrets) }

// Secret returns the text of a secret, and reports whether the secret exists.
func (s *Service) Secret(name string) (text string, ok bool) {
	text, ok = s.options.Secrets[name].(string)
	return text, ok
}

// CheckInput checks the input of a new run.
func (s *Service) CheckInput(wf *host.Workflow, input map[string]any) error {
	return wf.CheckInput(input, s.options.Secrets)
}

// Values returns what reads the values of a trigger.
func (s *Service) Values(wf *host.Workflow, serving *host.Serving, trigger int) (*host.Values, error) {
	return wf.Values(serving, trigger, s.options)
}

// PluginStatus returns the status of the service's plugins, as a list that can be
// encoded as JSON.
func (s *Service) PluginStatus() any { return pluginStatus(s.app.plugins.processes) }

// Environment returns the environment variables, which must not be changed.
func (s *Service) Environment() map[string]any { return s.options.Env }

// Execute calls start with the options of a run: the options of the command line, with
// the input, the answers, the events and the middleware of o. start calls
// [host.Workflow.Run] or [host.Workflow.Resume].
func (s *Service) Execute(ctx context.Context, wf *host.Workflow, o host.RunOptions, start func(context.Context, host.RunOptions) (*flow.Result, error)) (*flow.Result, error) {
	mask, err := s.Mask(wf)
	if err != nil {
		return nil, err
	}
	tracer, release, err := s.tracer(wf, mask)
	if err != nil {
		return nil, err
	}
	defer release()
	defer func() { _ = s.app.closeTracer(tracer, "") }() // only warns
	o.Secrets, o.Env, o.CheckpointDir, o.Durability = s.options.Secrets, s.options.Env, s.options.CheckpointDir, s.options.Durability
	if wrap := o.Middleware; wrap == nil {
		o.Middleware = tracer.Invoke
	} else {
		o.Middleware = func(ctx context.Context, req *tea.Request, next func(context.Context, *tea.Request) (*tea.Response, error)) (*tea.Response, error) {
			return tracer.Invoke(ctx, req, func(ctx context.Context, req *tea.Request) (*tea.Response, error) { return wrap(ctx, req, next) })
		}
	}
	events := o.Events
	o.Events = func(e flow.Event) {
		tracer.Event(e)
		events(e)
	}
	return start(ctx, o)
}

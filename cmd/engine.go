package teacmd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/cmd/internal/flowdir"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Engine runs workflows on another system, for --engine.
type Engine interface {
	// Run starts a run and follows it until it ends or waits.
	Run(ctx context.Context, f EngineFlags, job Job) (*flow.Result, error)
	// Schedule starts a run at each of the times, which are cron expressions. It
	// replaces the schedule with this id; no times remove it.
	Schedule(ctx context.Context, f EngineFlags, id string, times []string, job Job) error
	// Find loads the workflow of a run and returns the interrupts that wait.
	Find(f EngineFlags, h *host.Host, run string) (*host.Workflow, []flow.Interrupt, error)
	// Resume continues a run and follows it. With the option Force or Migrate it
	// replaces the workflow of a run that has ended.
	Resume(ctx context.Context, f EngineFlags, run string, job Job) (*flow.Result, error)
	// Runs lists the runs, the newest first.
	Runs(ctx context.Context, f EngineFlags) ([]checkpoints.Entry, error)
	// Show describes a run.
	Show(ctx context.Context, f EngineFlags, run string) (EngineRun, error)
	// Events calls fn with the events of a run after the one numbered after. With
	// follow it continues until the run ends or waits.
	Events(ctx context.Context, f EngineFlags, run string, after int64, follow bool, fn func(flow.Event)) error
	// Cancel cancels a run, and returns when it has stopped. With force it does not
	// wait for a worker.
	Cancel(ctx context.Context, f EngineFlags, run string, force bool) error
	// Fork starts a run with the records of another one up to a step, and follows it.
	Fork(ctx context.Context, f EngineFlags, run, step string, job Job) (*flow.Result, error)
}

// EngineRun describes a run of an [Engine].
type EngineRun struct {
	checkpoints.Entry
	checkpoints.Failure
	Pending []flow.Interrupt
	// State is the last state of a run that has ended or waits, with masked secrets.
	State map[string]any
	// Notes are messages for the user, such as why the run waits.
	Notes []string
	// Silent reports whether no worker answers for the run, so that its workflow and
	// events are not available, for the reason in Notes.
	Silent bool
}

// Job is a workflow to run with its options.
type Job struct {
	Workflow *host.Workflow
	Options  host.RunOptions
	// Load is how the workflow was loaded.
	Load host.LoadOptions
	// Warn shows a message to the user while the run continues.
	Warn func(message string)
}

// EngineFlags are the flags that choose an [Engine].
type EngineFlags struct {
	Engine string `config:"" placeholder:"local" values:"local,temporal" help:"What runs the workflow: local, or temporal for the workers of a Temporal server. Default: local."`
	TemporalFlags
}

// TemporalFlags name a Temporal server.
type TemporalFlags struct {
	Temporal  string `config:"" placeholder:"HOST:PORT" help:"Address of the Temporal server. Default: localhost:7233."`
	Namespace string `config:"" placeholder:"NAME" help:"Namespace on the Temporal server. Default: default."`
	Queue     string `config:"" placeholder:"NAME" help:"Task queue of the workers. Default: tea."`
	Keys      string `config:"" placeholder:"FILE" help:"Keys to encrypt what Temporal stores: on each line a name and 32 bytes in Base64. The first one encrypts, all decrypt."`
	Blobs     string `config:"" placeholder:"DIR|s3://BUCKET" help:"Directory, shared with the workers, or bucket (s3://, gs:// or azblob://) for values above 64 KB, which Temporal should not store."`
}

// engineProgram is the program with the engine temporal and the command worker.
const engineProgram = "temporal"

// firstSet returns the first of the flags that is on the command line, "" for none.
func (a *app) firstSet(flags ...string) string {
	for _, word := range a.args {
		if flag, _, _ := strings.Cut(word, "="); slices.Contains(flags, flag) {
			return flag
		}
	}
	return ""
}

// remote reports whether the run does not belong to this process. Flags without
// effect are refused, variables are not, because they apply to all commands.
func (f *EngineFlags) remote(a *app) (bool, error) {
	switch f.Engine {
	case "", "local":
		if flag := a.firstSet("--temporal", "--namespace", "--queue", "--keys", "--blobs"); flag != "" {
			return false, usageErrorf("%s has no effect without --engine temporal", flag)
		}
		return false, nil
	case "temporal":
		return true, nil
	}
	return false, usageErrorf("--engine %s: expected local or temporal", f.Engine)
}

// engineNames are the commands with a separate grammar for the runs of an
// engine; see [EngineCommands].
var engineNames = []string{"fork", "inspect", "runs"}

// onTemporal selects the commands for the runs of an engine if the arguments or
// TEA_ENGINE name one. If this program does not include the engine, it runs the
// program that does.
func (a *app) onTemporal(args []string) error {
	if len(args) == 0 || !slices.Contains(engineNames, args[0]) {
		return nil
	}
	if args[0] == "inspect" && slices.ContainsFunc(args[1:], func(arg string) bool { return isWorkflowFile(arg) || filepath.Ext(arg) == graphExt }) {
		return nil
	}
	engine := a.getenv("TEA_ENGINE")
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--engine="); ok {
			engine = value
		} else if arg == "--engine" && i+1 < len(args) {
			engine = args[i+1]
		}
	}
	if engine != engineProgram {
		return nil
	}
	if a.engine == nil {
		return runExternal(engineProgram, args)
	}
	a.added = append(slices.Clone(a.engineCommands), a.added...)
	return nil
}

// Command returns the command line of a tea command with the flags.
func (f *EngineFlags) Command(words ...string) string {
	return commandLine(append(words, f.words()...))
}

// words are the flags on a command line.
func (f *EngineFlags) words() []string {
	if f.Engine != "temporal" {
		return nil
	}
	return append([]string{"--engine", f.Engine}, f.TemporalFlags.words()...)
}

// Worker returns the command line of a worker for a queue, with further words.
func (f *TemporalFlags) Worker(queue string, more ...string) string {
	of := *f
	of.Queue = queue
	return commandLine(slices.Concat([]string{"worker"}, of.words(), more))
}

func (f *TemporalFlags) words() (words []string) {
	for _, given := range [][2]string{{"--temporal", f.Temporal}, {"--namespace", f.Namespace}, {"--queue", f.Queue}, {"--keys", f.Keys}, {"--blobs", f.Blobs}} {
		if given[1] != "" {
			words = append(words, given[:]...)
		}
	}
	return words
}

// onEngine runs a command on the engine of the flags. ok is false if the flags
// select this process.
func (a *app) onEngine(f *runFlags, load loader, start func(Engine, context.Context, Job) (*flow.Result, error)) (ok bool, err error) {
	remote, err := f.remote(a)
	if err != nil || !remote {
		return err != nil, err
	}
	if flag := a.firstSet("-c", "--checkpoint-dir"); flag != "" {
		return true, usageErrorf("%s has no effect with --engine temporal, which stores the runs", flag)
	}
	if f.Durability == string(flow.DurabilityOff) {
		return true, usageErrorf("durability off: Temporal stores every run; use sync, or async for short actions")
	}
	if f.DryRun {
		return true, usageErrorf("--dry-run: a worker would make the calls; leave out --engine temporal to try the workflow on this machine")
	}
	if a.engine == nil {
		return true, runExternal(engineProgram, a.args)
	}
	return true, a.execute(f, load, func(ctx context.Context, wf *host.Workflow, o host.RunOptions) (*flow.Result, error) {
		o.CheckpointDir = ""
		warn := a.logger(f.reportFlags).Warn
		res, err := start(a.engine, ctx, Job{Workflow: wf, Options: o, Warn: func(message string) { warn(message) }})
		if res == nil && err != nil && ctx.Err() != nil {
			err = &exitError{exitStopped, err}
		}
		return res, err
	})
}

// Worker is a command that executes the runs of an [Engine]. It is a struct with
// the flags of the command, which embeds [WorkerFlags].
type Worker interface {
	// Work returns when the context of the service is done.
	Work(s *Service) error
	workerFlags() *WorkerFlags
}

// WorkerCommand returns a command for [Options.Commands]. grammar returns a new
// struct with its flags, as kong reads them.
func WorkerCommand(name, help string, grammar func() Worker) Command {
	return Command{command{name: name, help: help, grammar: func() any {
		w := grammar()
		w.workerFlags().worker = w
		return w
	}}}
}

// WorkerFlags are the arguments and flags of a [Worker].
type WorkerFlags struct {
	Paths      []string `arg:"" optional:"" name:"path" help:"Workflow files, or directories of them, to check before the worker starts. The files of a run come with it."`
	Secrets    string   `config:"" placeholder:"JSON|@FILE" help:"Secrets by name."`
	SecretsEnv string   `config:"" placeholder:"PREFIX" help:"Use the environment variables with this prefix as secrets."`
	TemporalFlags
	pluginFlags
	reportFlags

	worker Worker `kong:"-"`
}

func (f *WorkerFlags) workerFlags() *WorkerFlags { return f } //nolint:unused // commands of other modules embed WorkerFlags

// workflowFiles returns the paths whose rules for plugins apply.
func (f *WorkerFlags) workflowFiles() []string {
	files := make([]string, len(f.Paths))
	for i, path := range f.Paths {
		if files[i] = path; !isFile(path) {
			files[i] = filepath.Join(path, "*.yaml")
		}
	}
	return files
}

// Run opens the service and executes runs until a signal stops it.
func (f *WorkerFlags) Run(a *app) error {
	if f.Secrets == "-" {
		return usageErrorf("--secrets - reads stdin; write the secrets to a file and pass @FILE")
	}
	a.setReport(f.reportFlags)
	serve := &ServeFlags{pluginFlags: f.pluginFlags, reportFlags: f.reportFlags}
	s := &Service{Version: a.version, Log: a.logger(f.reportFlags), app: a, flags: serve}
	var err error
	if s.options.Secrets, err = a.readSecrets(f.Secrets, f.SecretsEnv); err != nil {
		return err
	}
	a.mask, a.hide = host.NewMask(s.options.Secrets), s.hide
	if s.Host, err = a.openHost(f.pluginFlags, f.reportFlags, startPlugins, host.Options{}); err != nil {
		return err
	}
	defer s.Host.Close()
	if err := f.check(s); err != nil {
		return err
	}
	ctx, stop := reloadable(a.reload)
	defer stop(nil)
	s.Context = ctx
	go a.plugins.Watch(ctx)
	return f.worker.Work(s)
}

// check loads the workflows of the arguments.
func (f *WorkerFlags) check(s *Service) error {
	for _, path := range f.Paths {
		files, err := workflowsAt(path)
		if err != nil {
			return usageError(unreadable(path, err))
		}
		if len(files) == 0 {
			return usageErrorf("%s has no workflow files", path)
		}
		for _, file := range files {
			wf, err := s.Load(file)
			if err != nil {
				return err
			}
			warnTriggers(s.Log, wf, file)
			if err := wf.Close(); err != nil {
				return fmt.Errorf("close %s: %w", file, err)
			}
		}
	}
	return nil
}

// warnTriggers warns that a worker ignores the section serve.
func warnTriggers(log *slog.Logger, wf *host.Workflow, file string) {
	for _, trigger := range wf.Serving().Config().Triggers {
		text := fmt.Sprintf("a worker does not start runs of %s by its section serve, which is for `tea serve`", file)
		if trigger.Kind == host.TriggerCron {
			times := trigger.Timer.Cron
			if zone := trigger.Timer.Zone; zone != "" {
				times = "CRON_TZ=" + zone + " " + times
			}
			words, hint := []string{"run", file, "--engine", "temporal", "--schedule", times}, ""
			if input := trigger.Input; input != nil {
				raw, err := value.Encode(input.Value)
				if err == nil && !strings.Contains(string(raw), "{{") && !strings.Contains(string(raw), "{%") {
					words = append(words, "-i", string(raw))
				} else {
					hint = ", with --input: the input of the trigger has templates, and a schedule has fixed values"
				}
			}
			text += "; for the times of this trigger: `" + commandLine(words) + "`" + hint
		}
		log.Warn(text, "trigger", trigger.Name)
	}
}

// workflowsAt returns a file, or the workflow files of a directory.
func workflowsAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	var files []string
	for _, e := range entries {
		if flowdir.IsWorkflow(e.Name()) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, err
}

// Secrets returns the secrets of the command line, which must not be changed.
func (s *Service) Secrets() map[string]any { return s.options.Secrets }

// remoteID returns the id of a run for [Engine.Resume].
func remoteID(run string) (string, error) {
	if isWorkflowFile(run) || strings.HasSuffix(run, ".tea") {
		return "", usageErrorf("--engine temporal needs the id of the run, not the file %s", run)
	}
	return run, nil
}

package teacmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/cmd/internal/checkup"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// runFlags are the common flags of run, resume and fork.
type runFlags struct {
	Input           string   `short:"i" placeholder:"JSON|@FILE|-" help:"Input, merged over the initial state; on resume, into the state."`
	Stream          bool     `short:"s" config:"" help:"Print one JSON object per event to stdout during the run."`
	CheckpointDir   string   `group:"Checkpoint and interrupts:" short:"c" config:"" placeholder:"DIR" help:"Directory of the run's checkpoint, which is written after each node."`
	Durability      string   `group:"Checkpoint and interrupts:" config:"" placeholder:"sync" values:"exit,sync,async,off" help:"When records reach the disk: exit, sync, async or off. Default: sync with -c, otherwise exit."`
	Secrets         string   `config:"" placeholder:"JSON|@FILE" help:"Secrets by name."`
	SecretsEnv      string   `config:"" placeholder:"PREFIX" help:"Use the environment variables with this prefix as secrets."`
	InterruptBefore []string `group:"Checkpoint and interrupts:" config:"" placeholder:"NODE,..." help:"Stop before these nodes."`
	InterruptAfter  []string `group:"Checkpoint and interrupts:" config:"" placeholder:"NODE,..." help:"Stop after these nodes."`
	Interactive     bool     `group:"Checkpoint and interrupts:" short:"I" help:"Ask on the terminal instead of stopping at interrupts."`
	Output          string   `short:"o" placeholder:"FILE" help:"Write the final state to this file instead of stdout."`
	FailOnState     []string `sep:"none" placeholder:"KEY=VALUE" help:"Exit with 1 if the final state has this value (repeatable)."`
	DryRun          bool     `help:"Make only the calls of actions that only read, show the others, and write no checkpoint."`
	TraceFile       string   `config:"" placeholder:"FILE" help:"Append the run's spans to this file, one JSON object a line."`
	EngineFlags     `group:"Temporal:"`
	pluginFlags
	reportFlags
}

// options converts the flags to options of the host.
func (f *runFlags) options(a *app) (host.RunOptions, error) {
	var o host.RunOptions
	var err error
	if o.Input, err = a.readInput(f.Input); err != nil {
		return o, err
	}
	if o.Secrets, err = a.readSecrets(f.Secrets, f.SecretsEnv); err != nil {
		return o, err
	}
	if f.Durability != "" {
		if o.Durability, err = flow.ParseDurability(f.Durability); err != nil {
			return o, usageError(err)
		}
	}
	if f.Output == "-" { // the usual name for stdout
		f.Output = ""
	}
	o.Env = environment()
	if err := checkRules(f.FailOnState); err != nil {
		return o, err
	}
	o.InterruptBefore, o.InterruptAfter = f.InterruptBefore, f.InterruptAfter
	o.DryRun = f.DryRun
	if o.CheckpointDir = f.CheckpointDir; o.CheckpointDir == "" && !o.DryRun {
		err = a.keepByDefault(&o)
	}
	return o, err
}

// keepByDefault stores the run in the user's directory, where it is removed if
// it succeeds. Without a writable directory the run has no checkpoint, and a
// warning says so.
func (a *app) keepByDefault(o *host.RunOptions) error {
	dir, err := a.defaultRunDir()
	if err == nil && o.Durability != flow.DurabilityOff {
		err = writable(dir)
	}
	if err != nil {
		if o.Durability != "" && o.Durability != flow.DurabilityOff {
			return err
		}
		a.logger(reportFlags{}).Warn("this run has no checkpoint; name a directory with -c", "error", err)
		o.Durability = flow.DurabilityOff
		return nil
	}
	o.CheckpointDir = dir
	if o.Durability == "" {
		o.Durability = flow.DurabilityExit
	}
	return nil
}

// writable creates a directory if needed and checks that it can be written to.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := checkup.CheckWritable(dir); err != nil {
		return &os.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}

// defaultRunDir returns the directory of runs if -c is not given.
func (a *app) defaultRunDir() (string, error) {
	home := stateHome(a.getenv)
	if home == "" {
		return "", errors.New("neither XDG_STATE_HOME nor HOME is set")
	}
	return filepath.Join(home, "tea", "runs"), nil
}

// environment returns the root env of templates.
func environment() map[string]any {
	env := map[string]any{}
	for _, entry := range os.Environ() {
		if name, text, ok := strings.Cut(entry, "="); ok {
			env[name] = text
		}
	}
	return env
}

// resumeCommand returns the command that resumes a run that was started with
// these flags. Secrets in answers are masked.
func (f *runFlags) resumeCommand(res *flow.Result, mask host.Mask) string {
	words := []string{"resume", res.RunID}
	if filepath.IsAbs(res.Checkpoint) && filepath.Base(res.Checkpoint) != res.RunID+".tea" { // it was renamed
		words[1] = res.Checkpoint
	} else if f.CheckpointDir != "" {
		words = append(words, "-c", f.CheckpointDir)
	}
	for _, dir := range f.Plugins {
		words = append(words, "--plugins", dir)
	}
	if strings.HasPrefix(f.Secrets, "@") {
		words = append(words, "--secrets", f.Secrets)
	}
	if f.SecretsEnv != "" {
		words = append(words, "--secrets-env", f.SecretsEnv)
	}
	words = append(words, f.EngineFlags.words()...)
	stops := stopsOf(res.Pending)
	for _, i := range res.Pending {
		if i.Kind == flow.InterruptAsk {
			words = append(words, "--answer", i.ID+"="+encoded(mask.Value(exampleAnswer(i))))
		}
	}
	if len(stops) > 0 && len(stops) < len(res.Pending) {
		words = append(words, "--pass", passAll) // an answer alone does not pass stops
	}
	return commandLine(words)
}

// commandLine returns a call of this program, quoted for a shell.
func commandLine(words []string) string {
	line := shellQuote(os.Args[0])
	for _, word := range words {
		line += " " + shellQuote(word)
	}
	return line
}

func shellQuote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@+,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// failures checks --fail-on-state against the final state.
func (f *runFlags) failures(state map[string]any) error {
	for _, rule := range f.FailOnState {
		key, want, _ := strings.Cut(rule, "=")
		if holds(state, key, want) {
			return fmt.Errorf("the final state has %s (--fail-on-state)", rule)
		}
	}
	return nil
}

type runCmd struct {
	File string `arg:"" help:"Workflow file."`
	loadFlags
	runFlags
	Schedule   []string `group:"Temporal:" sep:"none" placeholder:"CRON" help:"With --engine temporal: run the workflow at these times instead of now (repeatable). off removes the schedule."`
	ScheduleID string   `group:"Temporal:" placeholder:"ID" help:"Name of the schedule. Default: the name of the workflow."`
}

func (c *runCmd) workflowFiles() []string { return []string{c.File} }

// Run runs the workflow.
func (c *runCmd) Run(a *app) error {
	load := func(h *host.Host, _ map[string]any) (*host.Workflow, error) {
		o := c.loadOptions()
		o.Remote = c.Engine == engineProgram
		return h.Load(c.File, o)
	}
	remote, err := a.onEngine(&c.runFlags, load, func(e Engine, ctx context.Context, job Job) (*flow.Result, error) {
		job.Load = c.loadOptions()
		if len(c.Schedule) > 0 {
			return nil, c.schedule(ctx, a, e, job)
		}
		return e.Run(ctx, c.EngineFlags, job)
	})
	if remote || err != nil {
		return err
	}
	if len(c.Schedule) > 0 {
		return usageErrorf("--schedule needs --engine temporal; `tea serve` starts the runs of this machine by its own schedules")
	}
	return a.execute(&c.runFlags, load, func(ctx context.Context, wf *host.Workflow, o host.RunOptions) (*flow.Result, error) {
		return wf.Run(ctx, o)
	})
}

// schedule creates, replaces or removes a schedule.
func (c *runCmd) schedule(ctx context.Context, a *app, e Engine, job Job) error {
	id, times := cmp.Or(c.ScheduleID, job.Workflow.Name()), c.Schedule
	if slices.Contains(times, "off") {
		times = nil
	}
	if err := e.Schedule(ctx, c.EngineFlags, id, times, job); err != nil {
		return err
	}
	if times == nil {
		fmt.Fprintf(a.report, "removed the schedule %s\n", id)
	} else {
		fmt.Fprintf(a.report, "the schedule %s starts runs at %s\n", id, strings.Join(times, "; "))
	}
	return nil
}

package teacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/trace"
	tea "github.com/the-edge-agent/tea/sdk"
)

type (
	loader  func(h *host.Host, secrets map[string]any) (*host.Workflow, error)
	starter func(ctx context.Context, wf *host.Workflow, o host.RunOptions) (*flow.Result, error)
)

// execute loads a workflow, runs it and reports progress and result, for all
// commands that run workflows.
func (a *app) execute(f *runFlags, load loader, start starter) error {
	a.setReport(f.reportFlags)
	o, err := f.options(a)
	if err != nil {
		return err
	}
	a.mask = host.NewMask(o.Secrets)
	h, err := a.openHost(f.pluginFlags, f.reportFlags, startPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	if f.Interactive && f.Input == "-" {
		return usageErrorf("-I and -i - both read stdin")
	}
	if err := checkOutput(f.Output); err != nil {
		return usageErrorf("--output: %w", err)
	}
	wf, err := load(h, o.Secrets)
	if err != nil {
		return err
	}
	defer wf.Close()
	if a.mask, err = wf.Mask(o.Secrets); err != nil {
		return err
	}
	if err := wf.CheckNodes(slices.Concat(f.InterruptBefore, f.InterruptAfter)...); err != nil {
		return usageErrorf("interrupt: %w", err)
	}
	if warnings := wf.Warnings(); len(warnings) > 0 {
		a.report.Diagnostics(warnings)
	}
	ctx, stop := reloadable(a.reload)
	defer stop(nil)
	go a.plugins.Watch(ctx)
	if f.Interactive {
		o.Ask = (&asker{app: a}).ask
	}
	w, err := a.watch(f, wf, &o)
	if err != nil {
		return err
	}
	res, err := start(ctx, wf, o)
	lost := a.closeTracer(w.tracer, f.TraceFile)
	if res == nil {
		_ = w.stream.end(nil)
		return refused(err)
	}
	if o.DryRun && res.State != nil {
		res.State["__dry_run__"] = w.avoided
	}
	if err = errors.Join(err, lost); err != nil {
		a.printError(err)
	}
	if lost := w.stream.end(a.mask.Value(res.State)); lost != nil && a.stdout.lost() == nil {
		a.logger(f.reportFlags).Warn("the stream of events ended early", "error", lost)
	}
	return a.finish(f, res, err != nil)
}

// refused turns an error before the run into a usage error if the arguments
// caused it.
func refused(err error) error {
	var input *flow.InputError
	var answer *tea.Error
	switch {
	case errors.Is(err, host.ErrInputUnused), errors.Is(err, host.ErrNothingFailed), errors.Is(err, host.ErrDurabilityOff):
		return usageError(err)
	case errors.As(err, &input):
		example := map[string]any{}
		for _, fault := range input.Faults {
			example[fault.Key] = exampleOf(fault.Expected)
		}
		return usageErrorf("--input: %w\n  hint: pass it as in -i %s", input, shellQuote(encoded(example)))
	case errors.As(err, &answer) && answer.Type == tea.ValidationError:
		return usageError(err)
	}
	return err
}

// watchers receive the events of a run in addition to the report.
type watchers struct {
	stream *eventStream
	tracer *trace.Tracer
	// avoided are the calls that a dry run does not make.
	avoided []any
}

// watch sends the run's events to the consumers that the flags select.
func (a *app) watch(f *runFlags, wf *host.Workflow, o *host.RunOptions) (*watchers, error) {
	tracer, err := a.tracer(f, wf, o.Secrets)
	if err != nil {
		return nil, usageError(err)
	}
	w := &watchers{stream: &eventStream{}, tracer: tracer, avoided: []any{}}
	if f.Stream {
		w.stream.w = a.stdout
	}
	o.Events = func(e flow.Event) {
		a.report.Event(e)
		w.stream.event(e)
		w.tracer.Event(e)
		if e.Type == flow.EventDryRun {
			w.avoided = append(w.avoided, map[string]any{"node": e.Path, "action": e.Text("call"), "params": e.Field("params")})
		}
	}
	o.Middleware = tracer.Invoke
	return w, nil
}

// finish prints the result and returns the exit code as an error. broken
// reports whether there was another error besides the run's.
func (a *app) finish(f *runFlags, res *flow.Result, broken bool) error {
	a.report.Close()
	a.report.Summary(res, a.mask.Text)
	if res.Status != flow.Done {
		switch {
		case f.DryRun:
		case res.Checkpoint == "":
			a.logger(f.reportFlags).Warn("the run cannot be resumed: it has no checkpoint")
		default:
			a.report.Checkpoint(res.Checkpoint, f.resumeCommand(res, a.mask))
		}
		code := codeOf(res)
		if host.LacksAction(res.Err) {
			a.explainMissing()
			if a.needsPlugin() {
				code = exitPlugin
			}
		}
		return &exitError{code: code}
	}
	if res.FailedBranches > 0 && res.Checkpoint != "" {
		a.report.Retry(f.resumeCommand(res, a.mask) + " --retry-failed")
	}
	if err := a.deliver(f, a.mask.Value(res.State)); err != nil {
		return fmt.Errorf("write the final state: %w", err)
	}
	if err := f.failures(res.State); err != nil {
		return err
	}
	if broken {
		return &exitError{code: exitFailed}
	}
	return nil
}

// deliver writes the final state to the place that the flags name. If the file
// cannot be written, the state goes to stdout, so that it is not lost.
func (a *app) deliver(f *runFlags, state any) error {
	write := func(w io.Writer) error { return writeState(w, state) }
	switch {
	case f.Output != "":
		err := writeFile(f.Output, 0o644, write)
		if err != nil && !f.Stream {
			err = errors.Join(err, write(a.stdout))
		}
		return err
	case f.Stream:
		return nil // the last event has the state
	}
	return write(a.stdout)
}

// tracer returns the tracer that --trace-file and settings.trace configure.
// Without either it does nothing.
func (a *app) tracer(f *runFlags, wf *host.Workflow, secrets map[string]any) (*trace.Tracer, error) {
	o := trace.Options{File: f.TraceFile, Mask: a.mask, Logger: a.logger(f.reportFlags)}
	if err := a.readTrace(&o, wf, secrets); err != nil {
		return nil, err
	}
	return trace.New(o)
}

// readTrace completes options with the workflow's options.
func (a *app) readTrace(o *trace.Options, wf *host.Workflow, secrets map[string]any) error {
	o.Console, o.Version = a.report, a.version
	settings, err := wf.Settings(secrets)
	if err != nil {
		return err
	}
	return o.Read(settings)
}

// traceGrace bounds how long the command waits for a collector after the run.
const traceGrace = 5 * time.Second

// closeTracer sends or writes the remaining spans. Lost spans are a warning, and an
// error if the user has named a file for them.
func (a *app) closeTracer(t *trace.Tracer, file string) error {
	ctx, cancel := context.WithTimeout(context.Background(), traceGrace)
	defer cancel()
	err := t.Close(ctx)
	if err != nil && file != "" {
		return fmt.Errorf("spans are lost: %w", err)
	}
	if err != nil {
		a.logger(reportFlags{}).Warn("spans are lost", "error", err)
	}
	return nil
}

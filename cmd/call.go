package teacmd

import (
	"errors"
	"strings"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

type callCmd struct {
	Action     string `arg:"" help:"Name of the action."`
	Params     string `arg:"" optional:"" default:"{}" placeholder:"JSON|@FILE|-" help:"Its parameters."`
	Stream     bool   `short:"s" config:"" help:"Print one JSON object per event to stdout during the call."`
	Secrets    string `config:"" placeholder:"JSON|@FILE" help:"Secrets by name."`
	SecretsEnv string `config:"" placeholder:"PREFIX" help:"Use the environment variables with this prefix as secrets."`
	TraceFile  string `config:"" placeholder:"FILE" help:"Append the call's spans to this file, one JSON object a line."`
	loadFlags
	pluginFlags
	reportFlags
}

// Run calls the action and prints its result.
func (c *callCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	params, err := a.readObject("PARAMS", c.Params)
	if err != nil {
		return err
	}
	f := &runFlags{Stream: c.Stream, Secrets: c.Secrets, SecretsEnv: c.SecretsEnv, TraceFile: c.TraceFile, Durability: string(flow.DurabilityOff), pluginFlags: c.pluginFlags, reportFlags: c.reportFlags}
	o, err := f.options(a)
	if err != nil {
		return err
	}
	a.mask = host.NewMask(o.Secrets)
	h, err := a.openHost(c.pluginFlags, c.reportFlags, startPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	wf, input, err := h.LoadCall(c.Action, params, c.loadOptions())
	if err != nil {
		return a.explainCall(err)
	}
	defer wf.Close()
	o.Input = input
	if a.mask, err = wf.Mask(o.Secrets); err != nil {
		return err
	}
	return a.call(f, wf, o)
}

// call runs the workflow of a call and prints the result of the action.
func (a *app) call(f *runFlags, wf *host.Workflow, o host.RunOptions) error {
	ctx, stop := stoppable()
	defer stop(nil)
	w, err := a.watch(f, wf, &o)
	if err != nil {
		return err
	}
	all := o.Events
	o.Events = func(e flow.Event) {
		switch e.Type {
		case flow.EventNodeEnd, flow.EventNodeError, flow.EventInterrupt:
			// The command prints the result or the error.
			w.stream.event(e)
			w.tracer.Event(e)
		default:
			all(e)
		}
	}
	res, err := wf.Run(ctx, o)
	lost := a.closeTracer(w.tracer, f.TraceFile)
	if res == nil {
		_ = w.stream.end(nil)
		return refused(err)
	}
	err = errors.Join(err, lost)
	_ = w.stream.end(a.mask.Value(res.State)) // stdout keeps the error
	a.report.Close()
	if res.Status == flow.Done {
		if f.Stream {
			return err // the last event has the result
		}
		return errors.Join(err, writeState(a.stdout, a.mask.Value(res.State[host.CallResult])))
	}
	return a.callFailure(res)
}

// callFailure returns the error of a call that did not succeed.
func (a *app) callFailure(res *flow.Result) error {
	var failure *tea.Error
	switch {
	case res.Status == flow.Waiting:
		return errors.New("the action waits for an answer; call it in a workflow")
	case !errors.As(res.Err, &failure):
		return &exitError{codeOf(res), res.Err}
	case host.LacksAction(res.Err) && a.needsPlugin():
		return pluginError(failure)
	case failure.Type == tea.ValidationError:
		return usageError(failure)
	}
	return &exitError{codeOf(res), failure}
}

// explainCall turns the mistakes in a call, which have no position in a file,
// into a usage error. An action that is missing because of a broken plugin is a
// plugin error.
func (a *app) explainCall(err error) error {
	var diags host.Diagnostics
	if !errors.As(err, &diags) {
		return err
	}
	var lines []string
	for _, d := range diags {
		if d.Severity != diag.Error {
			continue
		}
		if d.File != "" {
			return err
		}
		line := d.Message
		if d.Hint != "" {
			line += "\n  hint: " + d.Hint
		}
		lines = append(lines, line)
	}
	code := exitUsage
	if host.LacksPlugins(diags) {
		a.explainMissing()
		if a.needsPlugin() {
			code = exitPlugin
		}
	}
	return &exitError{code, errors.New(strings.Join(lines, "\n"))}
}

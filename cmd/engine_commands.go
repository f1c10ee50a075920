package teacmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// EngineCommands returns the commands for the runs of an engine, for
// [Options.EngineCommands].
func EngineCommands() []Command {
	return []Command{
		{command{name: "fork", help: "Copy a run up to a step and continue from there with other input.", grammar: func() any { return new(engineForkCmd) }}},
		{command{name: "inspect", help: "Draw the graph of a run's workflow with the statuses of the nodes.", grammar: func() any { return new(engineInspectCmd) }}},
		{command{name: "runs", help: "List runs, show a run, print its events, cancel it.", grammar: func() any { return new(engineRunsCmd) }}},
	}
}

type engineRunsCmd struct {
	List   engineListCmd   `cmd:"" default:"withargs" help:"List runs, the newest first (the default)."`
	Show   engineShowCmd   `cmd:"" help:"Show the status of a run and what it waits for."`
	Events engineEventsCmd `cmd:"" help:"Print a run's events as JSON lines."`
	Cancel engineCancelCmd `cmd:"" help:"Cancel a run."`
}

type engineListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	EngineFlags
}

// Run lists the runs.
func (c *engineListCmd) Run(a *app) error {
	ctx, stop := stoppable()
	defer stop(nil)
	list, err := a.engine.Runs(ctx, c.EngineFlags)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(a.stdout, list)
	}
	rows := make([][]string, len(list))
	for i, r := range list {
		rows[i] = []string{r.ID, r.Workflow, string(r.Status), r.Node, when(r.UpdatedAt)}
	}
	return a.table([]string{"RUN", "WORKFLOW", "STATUS", "NODE", "UPDATED"}, rows)
}

type engineShowCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	JSON  bool   `name:"json" xor:"form" help:"Print JSON."`
	HTML  bool   `name:"html" xor:"form" help:"Print a file of HTML: the graph coloured by status, a timeline, errors and events."`
	EngineFlags
	pluginFlags
	reportFlags
}

// Run shows one run.
func (c *engineShowCmd) Run(a *app) error {
	ctx, stop := stoppable()
	defer stop(nil)
	view, err := a.viewEngineRun(ctx, c.EngineFlags, c.RunID)
	if err != nil {
		return err
	}
	switch {
	case c.HTML:
		return view.html(a, c.pluginFlags, c.reportFlags)
	case c.JSON:
		return writeJSON(a.stdout, view.run)
	}
	return a.table(nil, view.run.rows(a, &runFlags{EngineFlags: c.EngineFlags}))
}

// viewEngineRun returns what is shown of a run of the engine.
func (a *app) viewEngineRun(ctx context.Context, f EngineFlags, run string) (*runView, error) {
	r, err := a.engine.Show(ctx, f, run)
	if err != nil {
		return nil, err
	}
	view := &runView{
		run: &runOutput{RunEntry: r.RunEntry, RunFailure: r.RunFailure, Pending: append([]flow.Interrupt{}, r.Pending...), Notes: r.Notes},
		load: func(h *host.Host, _ map[string]any) (*host.Workflow, error) {
			wf, _, err := a.engine.Find(f, h, run)
			return wf, err
		},
		events: func(fn func(line []byte) error) error {
			var failed error
			err := a.engine.Events(ctx, f, run, 0, false, func(e flow.Event) {
				if failed != nil {
					return
				}
				var line []byte
				if line, failed = e.MarshalJSON(); failed == nil {
					failed = fn(line)
				}
			})
			return errors.Join(err, failed)
		},
	}
	if r.Silent { // each question would wait
		silent := errors.New(strings.Join(r.Notes, "; "))
		view.load = func(*host.Host, map[string]any) (*host.Workflow, error) { return nil, silent }
		view.events = func(func([]byte) error) error { return silent }
	}
	return view, nil
}

type engineInspectCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	drawFlags
	EngineFlags
	pluginFlags
	reportFlags
}

// Run draws the graph on stdout.
func (c *engineInspectCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	ctx, stop := stoppable()
	defer stop(nil)
	view, err := a.viewEngineRun(ctx, c.EngineFlags, c.RunID)
	if err != nil {
		return err
	}
	return view.inspect(a, &c.drawFlags, c.pluginFlags, c.reportFlags)
}

type engineEventsCmd struct {
	RunID  string `arg:"" name:"run" help:"Id of the run."`
	After  int64  `placeholder:"SEQ" help:"Omit the events up to this number."`
	Follow bool   `help:"Continue until the run ends or waits."`
	// Events have *** in place of the secrets of the workers anyway.
	Secrets    string `config:"" placeholder:"JSON|@FILE" help:"Secrets to mask, besides those of the workers."`
	SecretsEnv string `config:"" placeholder:"PREFIX" help:"Mask the environment variables with this prefix, too."`
	EngineFlags
}

// Run prints the events.
func (c *engineEventsCmd) Run(a *app) error {
	ctx, stop := stoppable()
	defer stop(nil)
	secrets, err := a.readSecrets(c.Secrets, c.SecretsEnv)
	if err != nil {
		return err
	}
	mask, stream := host.NewMask(secrets), &eventStream{w: a.stdout}
	err = a.engine.Events(ctx, c.EngineFlags, c.RunID, c.After, c.Follow, func(e flow.Event) {
		for i, f := range e.Fields {
			e.Fields[i].Value = mask.Value(f.Value)
		}
		stream.print(e)
	})
	stream.mu.Lock()
	defer stream.mu.Unlock()
	stream.flush()
	return errors.Join(err, stream.failed)
}

type engineCancelCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	Force bool   `help:"End the run immediately, also if no worker can take it. It has no last events."`
	EngineFlags
}

// Run cancels a run and waits until it has stopped.
func (c *engineCancelCmd) Run(a *app) error {
	ctx, stop := stoppable()
	defer stop(nil)
	return a.engine.Cancel(ctx, c.EngineFlags, c.RunID, c.Force)
}

type engineForkCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	At    string `required:"" placeholder:"STEP" help:"Number of the last record to copy, or path of the node after which the fork begins."`
	runFlags
}

// Run starts the fork.
func (c *engineForkCmd) Run(a *app) error {
	_, err := a.onEngine(&c.runFlags, func(h *host.Host, _ map[string]any) (*host.Workflow, error) {
		wf, _, err := a.engine.Find(c.EngineFlags, h, c.RunID)
		return wf, err
	}, func(e Engine, ctx context.Context, job Job) (*flow.Result, error) {
		return e.Fork(ctx, c.EngineFlags, c.RunID, c.At, job)
	})
	if errors.Is(err, host.ErrNoStep) {
		return fmt.Errorf("%w; `tea runs events` lists its nodes", err)
	}
	return err
}

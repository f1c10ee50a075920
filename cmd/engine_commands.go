package teacmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
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

func (c *engineListCmd) Run(a *app) error {
	return a.onRuns(c.EngineFlags, func(s *engineRuns) error { return a.listRuns(s, c.JSON) })
}

// engineRuns are the runs of an engine.
type engineRuns struct {
	a     *app
	ctx   context.Context
	flags EngineFlags
	mask  host.Mask
}

// onRuns calls do with the runs of the engine until the command is interrupted.
func (a *app) onRuns(f EngineFlags, do func(*engineRuns) error) error {
	ctx, stop := stoppable()
	defer stop(nil)
	return do(&engineRuns{a: a, ctx: ctx, flags: f, mask: host.NewMask(nil)})
}

// loadEngineRun returns a loader for the workflow of a run.
func (a *app) loadEngineRun(f EngineFlags, id string) loader {
	return func(h *host.Host, _ map[string]any) (*host.Workflow, error) {
		wf, _, err := a.engine.Find(f, h, id)
		return wf, err
	}
}

func (s *engineRuns) list() (list []checkpoints.Entry, form any, err error) {
	list, err = s.a.engine.Runs(s.ctx, s.flags)
	return list, list, err
}

func (s *engineRuns) show(id string) (*runView, error) {
	r, err := s.a.engine.Show(s.ctx, s.flags, id)
	if err != nil {
		return nil, err
	}
	run := &runOutput{Entry: r.Entry, Failure: r.Failure, Pending: append([]flow.Interrupt{}, r.Pending...), Notes: r.Notes}
	view := s.a.view(run, &runFlags{EngineFlags: s.flags})
	view.load = s.a.loadEngineRun(s.flags, id)
	view.events = func(fn func(line []byte) error) error { return s.events(id, 0, false, fn) }
	if r.State != nil {
		view.state = func(*host.Workflow) (map[string]any, error) {
			state, _ := s.mask.Value(r.State).(map[string]any)
			return state, nil
		}
	}
	if r.Silent { // each question would wait
		silent := errors.New(strings.Join(r.Notes, "; "))
		view.load = func(*host.Host, map[string]any) (*host.Workflow, error) { return nil, silent }
		view.events = func(func([]byte) error) error { return silent }
	}
	return view, nil
}

func (s *engineRuns) events(id string, after int64, follow bool, fn func(line []byte) error) error {
	var failed error
	err := s.a.engine.Events(s.ctx, s.flags, id, after, follow, func(e flow.Event) {
		if failed != nil {
			return
		}
		for i, f := range e.Fields {
			e.Fields[i].Value = s.mask.Value(f.Value)
		}
		var line []byte
		if line, failed = e.MarshalJSON(); failed == nil {
			failed = fn(line)
		}
	})
	return errors.Join(err, failed)
}

func (s *engineRuns) node(id, name string) (*runview.Node, error) {
	return runview.FindNode(name, func(fn func(line []byte) error) error { return s.events(id, 0, false, fn) })
}

type engineShowCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	EngineFlags
	showFlags
}

func (c *engineShowCmd) Run(a *app) error {
	return a.onRuns(c.EngineFlags, func(s *engineRuns) error { return c.show(a, s, c.RunID) })
}

type engineInspectCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	drawFlags
	EngineFlags
	pluginFlags
	reportFlags
}

func (c *engineInspectCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	return a.onRuns(c.EngineFlags, func(s *engineRuns) error { return c.drawRun(a, s, c.RunID, c.pluginFlags, c.reportFlags) })
}

type engineEventsCmd struct {
	RunID  string `arg:"" name:"run" help:"Id of the run."`
	After  int64  `placeholder:"SEQ" help:"Omit the events up to this number."`
	Follow bool   `help:"Continue until the run ends or waits."`
	// In events, the secrets of the workers are always masked.
	Secrets    string `config:"" placeholder:"JSON|@FILE" help:"Secrets to mask, besides the workers' secrets."`
	SecretsEnv string `config:"" placeholder:"PREFIX" help:"Mask the environment variables with this prefix, too."`
	EngineFlags
}

func (c *engineEventsCmd) Run(a *app) error {
	secrets, err := a.readSecrets(c.Secrets, c.SecretsEnv)
	if err != nil {
		return err
	}
	return a.onRuns(c.EngineFlags, func(s *engineRuns) error {
		s.mask = host.NewMask(secrets)
		return a.printEvents(s, c.RunID, c.After, c.Follow)
	})
}

type engineCancelCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	Force bool   `help:"End the run immediately, even if no worker can take it. It has no last events."`
	EngineFlags
}

func (c *engineCancelCmd) Run(a *app) error {
	return a.onRuns(c.EngineFlags, func(s *engineRuns) error { return a.engine.Cancel(s.ctx, c.EngineFlags, c.RunID, c.Force) })
}

type engineForkCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	At    string `required:"" placeholder:"STEP" help:"Number of the last record to copy, or path of the node after which the fork begins."`
	runFlags
}

func (c *engineForkCmd) Run(a *app) error {
	_, err := a.onEngine(&c.runFlags, a.loadEngineRun(c.EngineFlags, c.RunID), func(e Engine, ctx context.Context, job Job) (*flow.Result, error) {
		return e.Fork(ctx, c.EngineFlags, c.RunID, c.At, job)
	})
	if errors.Is(err, checkpoints.ErrNoStep) {
		return fmt.Errorf("%w; `tea runs events` lists its nodes", err)
	}
	return err
}

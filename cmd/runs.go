package teacmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

type runsCmd struct {
	List   runsListCmd   `cmd:"" default:"withargs" help:"List runs, the newest first (the default)."`
	Show   runsShowCmd   `cmd:"" help:"Show the status of a run and what it waits for."`
	Events runsEventsCmd `cmd:"" help:"Print a run's events as JSON lines."`
	Diff   runsDiffCmd   `cmd:"" help:"Compare two runs: input, path, state, time and cost."`
}

// keepFlags name the directory of runs.
type keepFlags struct {
	CheckpointDir string `short:"c" config:"" placeholder:"DIR" help:"Directory of runs."`
}

// dir returns the directory that the flags name, or the default one.
func (f keepFlags) dir(a *app) (string, error) {
	if f.CheckpointDir != "" {
		return f.CheckpointDir, nil
	}
	return a.defaultRunDir()
}

// openDir opens the directory of the flags, or the default one. It returns nil, with
// a message to the user, if the directory does not exist.
func (f keepFlags) openDir(a *app) (*checkpoints.Dir, error) {
	dir, err := f.dir(a)
	if err != nil {
		return nil, err
	}
	runs, err := checkpoints.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(a.report, "no runs in %s: the directory does not exist\n", absolute(dir))
		return nil, nil
	}
	return runs, err
}

// open opens the directory and finds a run in it.
func (f keepFlags) open(a *app, run string) (*checkpoints.Dir, runDir, string, error) {
	dir, id, err := a.findRun(f.CheckpointDir, run, false)
	if err != nil {
		return nil, dir, "", err
	}
	runs, err := dir.open(id)
	return runs, dir, id, err
}

type runsListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	listFlags
	keepFlags
}

// listFlags select runs of a list.
type listFlags struct {
	Workflow string `placeholder:"NAME" help:"Only runs of this workflow."`
	Status   string `placeholder:"STATUS" help:"Only runs with this status."`
	Trigger  string `placeholder:"NAME" help:"Only runs that this trigger of tea serve has started."`
	Search   string `placeholder:"WORDS" help:"Only runs whose id, workflow or the beginning of the input contains these words; with --host, trigger and error, too."`
	Since    string `placeholder:"TIME" help:"Only runs that began at this time or later: a day such as 2026-11-28, or RFC 3339."`
	Until    string `placeholder:"TIME" help:"Only runs that began before this time."`
	Limit    int    `placeholder:"N" help:"Print at most N runs."`
}

// filter returns the filter of the flags, and an error for an invalid one.
func (f *listFlags) filter() (out runview.Filter, err error) {
	if f.Limit < 0 {
		return out, usageErrorf("--limit: expected a number above 0, got %d", f.Limit)
	}
	out = runview.Filter{Workflow: f.Workflow, Status: f.Status, Search: f.Search}
	if out.Since, err = runview.ParseTime(f.Since); err != nil {
		return out, usageErrorf("--since: %w", err)
	}
	if out.Until, err = runview.ParseTime(f.Until); err != nil {
		return out, usageErrorf("--until: %w", err)
	}
	return out, nil
}

func (c *runsListCmd) Run(a *app) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	return a.listRuns(&localRuns{a: a, keepFlags: c.keepFlags, filter: filter, trigger: c.Trigger, limit: c.Limit}, c.JSON)
}

// localRuns are the runs of a directory.
type localRuns struct {
	a *app
	keepFlags
	workflow string
	filter   runview.Filter
	trigger  string // "" = any
	limit    int    // 0 = no limit
}

func (s *localRuns) list() (list []checkpoints.Entry, form any, err error) {
	runs, err := s.openDir(s.a)
	if err == nil && runs != nil {
		list, err = runs.List()
	}
	list = slices.DeleteFunc(list, func(e checkpoints.Entry) bool {
		_, trigger, _ := strings.Cut(e.StartedBy, " ")
		return s.trigger != "" && s.trigger != trigger || !s.filter.In(e.StartedAt) || !s.filter.Has(e.Workflow, string(e.Status), e.ID, e.Workflow, e.Input)
	})
	if s.limit > 0 && len(list) > s.limit {
		list = list[:s.limit]
	}
	for i := range list {
		if list[i].Status == flow.Waiting {
			list[i].Question = questionOf(runs, list[i].ID)
		}
	}
	return list, append([]checkpoints.Entry{}, list...), err
}

// questionOf returns the first question of a waiting run.
func questionOf(runs *checkpoints.Dir, id string) string {
	contents, err := runs.Show(id)
	if err != nil {
		return ""
	}
	pending, err := checkpoints.Pending(contents)
	if err != nil || len(pending) == 0 {
		return ""
	}
	return pending[0].Question
}

func (s *localRuns) show(name string) (*runView, error) {
	runs, dir, id, err := s.open(s.a, name)
	if err != nil {
		return nil, err
	}
	contents, err := runs.Show(id)
	if err != nil {
		return nil, err
	}
	entry, err := runs.Entry(id)
	if err != nil {
		return nil, err
	}
	pending, err := checkpoints.Pending(contents)
	if err != nil {
		return nil, err
	}
	run := &runOutput{Entry: entry, Pending: append([]flow.Interrupt{}, pending...), Notes: contents.Notes}
	if run.Failure, err = checkpoints.FailureOf(contents); err != nil {
		return nil, err
	}
	events := func(fn func(line []byte) error) error { return allEvents(runs, id, fn) }
	if run.Files, err = runview.Files(events); err != nil {
		return nil, err
	}
	view := s.a.view(run, &runFlags{CheckpointDir: dir.given})
	view.load = s.a.loadOf(dir.path, id, host.LoadRunOptions{File: s.workflow, View: true})
	view.events = events
	view.state = func(wf *host.Workflow) (map[string]any, error) {
		return wf.StateAt(context.Background(), contents, uint64(len(contents.Records)))
	}
	return view, nil
}

// allEvents calls fn with the events of a run, values included.
func allEvents(runs *checkpoints.Dir, id string, fn func(line []byte) error) error {
	events, err := runs.OpenEvents(id, 0)
	if err == nil {
		events.Values = true
		err = events.Next(func(_ int64, line []byte) error { return fn(line) })
	}
	if errors.Is(err, fs.ErrNotExist) { // a run killed at its start has no events
		return nil
	}
	return err
}

func (s *localRuns) node(run, name string) (*runview.Node, error) {
	runs, _, id, err := s.open(s.a, run)
	if err != nil {
		return nil, err
	}
	return runview.FindNode(name, func(fn func(line []byte) error) error { return allEvents(runs, id, fn) })
}

// followEvery is the interval at which the log of a running run is read.
const followEvery = 100 * time.Millisecond

func (s *localRuns) events(name string, after int64, follow bool, fn func(line []byte) error) error {
	runs, _, id, err := s.open(s.a, name)
	if err != nil {
		return err
	}
	events, err := runs.OpenEvents(id, after)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		// Read the status before the events, so that the last events are not missed.
		entry, err := runs.Entry(id)
		running := follow && err == nil && entry.Status == flow.Running
		err = events.Next(func(_ int64, line []byte) error { return fn(line) })
		if err != nil || !running {
			return err
		}
		<-ticker.C
	}
}

type runsShowCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	workflowFlag
	keepFlags
	showFlags
}

func (c *runsShowCmd) Run(a *app) error {
	return c.show(a, &localRuns{a: a, keepFlags: c.keepFlags, workflow: c.Workflow}, c.RunID)
}

type runsEventsCmd struct {
	RunID  string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	After  int64  `placeholder:"SEQ" help:"Omit the events up to this number."`
	Follow bool   `help:"Continue until the run ends."`
	keepFlags
}

func (c *runsEventsCmd) Run(a *app) error {
	return a.printEvents(&localRuns{a: a, keepFlags: c.keepFlags}, c.RunID, c.After, c.Follow)
}

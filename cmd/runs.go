package teacmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

type runsCmd struct {
	List   runsListCmd   `cmd:"" default:"withargs" help:"List runs, the newest first (the default)."`
	Show   runsShowCmd   `cmd:"" help:"Show the status of a run and what it waits for."`
	Events runsEventsCmd `cmd:"" help:"Print a run's events as JSON lines."`
}

// keepFlags name the directory of runs.
type keepFlags struct {
	CheckpointDir string `short:"c" config:"" placeholder:"DIR" help:"Directory of runs."`
}

// dir returns the named or the default directory.
func (f keepFlags) dir(a *app) (string, error) {
	if f.CheckpointDir != "" {
		return f.CheckpointDir, nil
	}
	return a.defaultRunDir()
}

// openDir opens the named or the default directory. It returns nil, with a
// message to the user, if the directory does not exist.
func (f keepFlags) openDir(a *app) (*host.Runs, error) {
	dir, err := f.dir(a)
	if err != nil {
		return nil, err
	}
	runs, err := host.OpenRuns(dir)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(a.report, "no runs in %s: the directory does not exist\n", absolute(dir))
		return nil, nil
	}
	return runs, err
}

// open opens the directory and finds a run in it.
func (f keepFlags) open(a *app, run string) (*host.Runs, runDir, string, error) {
	dir, id, err := a.findRun(f.CheckpointDir, run, false)
	if err != nil {
		return nil, dir, "", err
	}
	runs, err := dir.open(id)
	return runs, dir, id, err
}

type runsListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	keepFlags
}

// Run lists the runs.
func (c *runsListCmd) Run(a *app) error {
	runs, err := c.openDir(a)
	if err != nil {
		return err
	}
	list := []host.RunEntry{}
	if runs != nil {
		if list, err = runs.List(); err != nil {
			return err
		}
	}
	if c.JSON {
		return writeJSON(a.stdout, list)
	}
	// The id begins with the time of the start.
	rows := make([][]string, len(list))
	for i, r := range list {
		rows[i] = []string{r.ID, r.Workflow, string(r.Status), r.Node, when(r.UpdatedAt)}
		if r.Problem != "" {
			rows[i] = []string{r.ID, "", "unreadable", "", r.Problem}
		}
	}
	return a.table([]string{"RUN", "WORKFLOW", "STATUS", "NODE", "UPDATED"}, rows)
}

func when(t time.Time) string { return t.Local().Format(time.DateTime) }

type runsShowCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	JSON  bool   `name:"json" xor:"form" help:"Print JSON."`
	HTML  bool   `name:"html" xor:"form" help:"Print a file of HTML: the graph coloured by status, a timeline, errors and events."`
	workflowFlag
	keepFlags
	pluginFlags
	reportFlags
}

// viewRun returns what is shown of a run of a directory.
func (a *app) viewRun(runs *host.Runs, dir, id, file string) (*runView, error) {
	run, err := describeRun(runs, id)
	if err != nil {
		return nil, err
	}
	return &runView{run: run, load: a.loadOf(dir, id, host.LoadRunOptions{File: file, Changed: true, View: true}), events: func(fn func(line []byte) error) error {
		err := runs.Events(id, 0, func(_ int64, line []byte) error { return fn(line) })
		if errors.Is(err, fs.ErrNotExist) { // a run killed at its start has no events
			return nil
		}
		return err
	}}, nil
}

// runOutput is the JSON form of a run.
type runOutput struct {
	host.RunEntry
	host.RunFailure
	Pending []flow.Interrupt `json:"pending"`
	Notes   []string         `json:"notes,omitempty"`
}

// Run shows one run.
func (c *runsShowCmd) Run(a *app) error {
	runs, dir, id, err := c.open(a, c.RunID)
	if err != nil {
		return err
	}
	view, err := a.viewRun(runs, dir.path, id, c.Workflow)
	if err != nil {
		return err
	}
	switch {
	case c.HTML:
		return view.html(a, c.pluginFlags, c.reportFlags)
	case c.JSON:
		return writeJSON(a.stdout, view.run)
	}
	return a.table(nil, view.run.rows(a, &runFlags{CheckpointDir: dir.given}))
}

// describeRun reads the description of a run.
func describeRun(runs *host.Runs, id string) (*runOutput, error) {
	contents, err := runs.Show(id)
	if err != nil {
		return nil, err
	}
	entry, err := runs.Entry(id)
	if err != nil {
		return nil, err
	}
	out := &runOutput{RunEntry: entry, Pending: []flow.Interrupt{}, Notes: contents.Notes}
	pending, err := host.Pending(contents)
	if err != nil {
		return nil, err
	}
	out.Pending = append(out.Pending, pending...)
	if out.RunFailure, err = host.FailureOf(contents); err != nil {
		return nil, err
	}
	return out, nil
}

// rows describe the run for people.
func (out *runOutput) rows(a *app, f *runFlags) [][]string {
	var rows [][]string
	row := func(name, text string) {
		if text != "" {
			rows = append(rows, []string{name, text})
		}
	}
	row("run", out.ID)
	row("workflow", out.Workflow)
	row("file", out.WorkflowFile)
	row("status", string(out.Status))
	row("node", out.Node)
	row("error", out.Error)
	for i, f := range out.Failures {
		switch {
		case f.Branch:
			row("failed branch", f.String())
		case i == 0 && out.Error != "":
			row("first failure", f.String())
		}
	}
	row("started", when(out.StartedAt))
	row("updated", when(out.UpdatedAt))
	row("forked from", out.ParentRun)
	row("checkpoint", out.Path)
	for _, note := range out.Notes {
		row("note", note)
	}
	for _, i := range out.Pending {
		row("waits for", i.ID)
		row("question", i.Question)
		row("answer by", host.Deadline(i))
	}
	if open := out.Status != flow.Done && out.Status != flow.Running; open {
		row("resume with", f.resumeCommand(&flow.Result{RunID: out.ID, Checkpoint: out.Path, Pending: out.Pending}, a.mask))
	}
	return rows
}

type runsEventsCmd struct {
	RunID  string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	After  int64  `placeholder:"SEQ" help:"Omit the events up to this number."`
	Follow bool   `help:"Continue until the run ends."`
	keepFlags
}

// followEvery is the interval at which the log of a running run is read.
const followEvery = 100 * time.Millisecond

// Run prints the events.
func (c *runsEventsCmd) Run(a *app) error {
	runs, _, id, err := c.open(a, c.RunID)
	if err != nil {
		return err
	}
	events, err := runs.OpenEvents(id, c.After)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		// Before the reading, so that the last events are not missed.
		goesOn := c.Follow && isRunning(runs, id)
		err := events.Next(func(_ int64, line []byte) error {
			_, err := a.stdout.Write(append(bytes.Clone(escapeJSON(line)), '\n'))
			return err
		})
		if err != nil || !goesOn {
			return err
		}
		<-ticker.C
	}
}

func isRunning(runs *host.Runs, id string) bool {
	entry, err := runs.Entry(id)
	return err == nil && entry.Status == flow.Running
}

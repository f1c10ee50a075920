package teacmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
)

type checkpointDiffCmd struct {
	A       string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	B       string `arg:"" name:"other" optional:"" help:"The run to compare with. Default: the same."`
	At      string `placeholder:"STEP" help:"Step of the first run: the number of a record, or the path of a node that has ended. Default: its end; its start if no other run is named."`
	To      string `placeholder:"STEP" help:"Step of the other run. Default: its end."`
	Records bool   `help:"Compare the records of two runs instead of their states."`
	JSON    bool   `name:"json" help:"Print JSON."`
	keepFlags
	pluginFlags
	reportFlags
}

func (c *checkpointDiffCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	if c.Records && (c.B == "" || c.At != "" || c.To != "") {
		return usageErrorf("--records compares two complete runs: name both, without --at and --to")
	}
	if c.B == "" {
		c.B = c.A
		if c.At == "" {
			c.At = "1"
		}
	}
	if c.Records {
		return c.records(a)
	}
	return c.states(a)
}

func (c *checkpointDiffCmd) states(a *app) error {
	h, err := a.openHost(c.pluginFlags, c.reportFlags, readPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	var states [2]map[string]any
	for i, side := range []struct{ run, step string }{{c.A, c.At}, {c.B, c.To}} {
		if states[i], err = c.state(a, h, side.run, side.step); err != nil {
			return err
		}
	}
	changes := checkpoints.CompareStates(states[0], states[1])
	if c.JSON {
		if changes == nil {
			changes = []checkpoints.Change{}
		}
		return writeJSON(a.stdout, changes)
	}
	if len(changes) == 0 {
		a.printMessage(c.reportFlags, "no difference")
	}
	a.printChanges(changes)
	return nil
}

// printChanges prints the differences between two states.
func (a *app) printChanges(changes []checkpoints.Change) {
	for _, change := range changes {
		switch change.Kind {
		case checkpoints.Added:
			fmt.Fprintf(a.out, "+ %s: %s\n", inLine(change.Key), clip(encoded(change.To)))
		case checkpoints.Removed:
			fmt.Fprintf(a.out, "- %s: %s\n", inLine(change.Key), clip(encoded(change.From)))
		default:
			fmt.Fprintf(a.out, "~ %s: %s -> %s\n", inLine(change.Key), clip(encoded(change.From)), clip(encoded(change.To)))
		}
	}
}

// state computes the state of a run after a step; "" is the last one.
func (c *checkpointDiffCmd) state(a *app, h *host.Host, run, step string) (map[string]any, error) {
	r, err := c.load(a, h, run)
	if err != nil {
		return nil, err
	}
	defer r.wf.Close()
	at := uint64(len(r.contents.Records))
	if step != "" {
		if at, err = r.runs.Step(r.id, step); err != nil {
			return nil, noStep(err, r.dir, r.id)
		}
	}
	return r.stateAt(at)
}

// loadedRun is a run with its workflow, which the caller closes.
type loadedRun struct {
	runs     *checkpoints.Dir
	dir      runDir
	id       string
	contents *checkpoints.Contents
	wf       *host.Workflow
}

func (f keepFlags) load(a *app, h *host.Host, run string) (r loadedRun, err error) {
	if r.runs, r.dir, r.id, err = f.open(a, run); err != nil {
		return r, err
	}
	if r.contents, err = r.runs.Show(r.id); err != nil {
		return r, err
	}
	info, err := host.FindRun(r.dir.path, r.id)
	if err != nil {
		return r, err
	}
	r.wf, err = h.LoadRun(info, host.LoadRunOptions{View: true})
	return r, recordsHint(err)
}

// stateAt returns the state of the run after a record.
func (r *loadedRun) stateAt(seq uint64) (map[string]any, error) {
	state, err := r.wf.StateAt(context.Background(), r.contents, seq)
	return state, recordsHint(err)
}

// recordsHint adds the command that does not need the workflow of a run.
func recordsHint(err error) error {
	if gone := (*host.WorkflowNotFoundError)(nil); errors.As(err, &gone) || errors.Is(err, host.ErrWorkflowChanged) {
		return fmt.Errorf("%w; use `tea checkpoint diff --records` to compare the records", err)
	}
	return err
}

// records compares the records of two runs.
func (c *checkpointDiffCmd) records(a *app) error {
	var contents [2]*checkpoints.Contents
	for i, run := range []string{c.A, c.B} {
		runs, _, id, err := c.open(a, run)
		if err != nil {
			return err
		}
		if contents[i], err = runs.Show(id); err != nil {
			return err
		}
	}
	differences, err := checkpoints.Compare(contents[0], contents[1])
	if err != nil {
		return err
	}
	if c.JSON {
		if differences == nil {
			differences = []checkpoints.Difference{}
		}
		return writeJSON(a.stdout, differences)
	}
	if len(differences) == 0 {
		a.printMessage(c.reportFlags, "no difference")
	}
	for _, d := range differences {
		name := d.Kind
		if d.Path != "" {
			name += " " + inLine(d.Path)
		}
		switch {
		case d.OnlyA:
			fmt.Fprintf(a.out, "- %s: %s\n", name, clip(encoded(d.A)))
		case d.OnlyB:
			fmt.Fprintf(a.out, "+ %s: %s\n", name, clip(encoded(d.B)))
		default:
			fmt.Fprintf(a.out, "~ %s: %s: %s -> %s\n", name, inLine(d.Key), clip(encoded(d.A)), clip(encoded(d.B)))
		}
	}
	return nil
}

// printMessage prints a message for people, unless the output is JSON.
func (a *app) printMessage(f reportFlags, text string) {
	if !f.Quiet {
		fmt.Fprintln(a.report, text)
	}
}

type runsDiffCmd struct {
	A    string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	B    string `arg:"" name:"other" help:"The run to compare with."`
	JSON bool   `name:"json" help:"Print JSON."`
	keepFlags
	pluginFlags
	reportFlags
}

func (c *runsDiffCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	h, err := a.openHost(c.pluginFlags, c.reportFlags, readPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	var sides [2]*runview.Side
	for i, run := range []string{c.A, c.B} {
		if sides[i], err = c.side(a, h, run); err != nil {
			return err
		}
	}
	cmp := runview.Compare(sides[0], sides[1])
	if c.JSON {
		return writeJSON(a.stdout, cmp)
	}
	return a.printComparison(cmp)
}

func (c *runsDiffCmd) side(a *app, h *host.Host, run string) (*runview.Side, error) {
	r, err := c.load(a, h, run)
	if err != nil {
		return nil, err
	}
	defer r.wf.Close()
	entry, err := r.runs.Entry(r.id)
	if err != nil {
		return nil, err
	}
	return runview.NewSide(entry, r.contents, func(fn func(line []byte) error) error { return allEvents(r.runs, r.id, fn) }, r.stateAt)
}

// printComparison prints what differs between two runs.
func (a *app) printComparison(c *runview.Comparison) error {
	if err := a.table([]string{"", "A", "B"}, c.Rows()); err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		changes []checkpoints.Change
	}{{"input", c.Input}, {"state", c.State}} {
		if len(part.changes) > 0 {
			fmt.Fprintf(a.out, "\n%s\n", part.name)
			a.printChanges(part.changes)
		}
	}
	if c.Omitted > 0 {
		fmt.Fprintf(a.report, "%d more differences are not shown\n", c.Omitted)
	}
	return nil
}

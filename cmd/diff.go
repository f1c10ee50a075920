package teacmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
)

type checkpointDiffCmd struct {
	A       string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	B       string `arg:"" name:"other" optional:"" help:"The run to compare with. Default: the same."`
	At      string `placeholder:"STEP" help:"Step of the first run: the number of a record, or the path of a node that has ended. Default: its end; its start where no other run is named."`
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
	return nil
}

// state computes the state of a run after a step; "" is the last one.
func (c *checkpointDiffCmd) state(a *app, h *host.Host, run, step string) (map[string]any, error) {
	runs, dir, id, err := c.open(a, run)
	if err != nil {
		return nil, err
	}
	contents, err := runs.Show(id)
	if err != nil {
		return nil, err
	}
	at := uint64(len(contents.Records))
	if step != "" {
		if at, err = runs.Step(id, step); err != nil {
			return nil, noStep(err, dir, id)
		}
	}
	info, err := host.FindRun(dir.path, id)
	if err != nil {
		return nil, err
	}
	wf, err := h.LoadRun(info, host.LoadRunOptions{View: true})
	if gone := (*host.WorkflowNotFoundError)(nil); errors.As(err, &gone) {
		err = fmt.Errorf("%w; use --records to compare the records", err)
	}
	if err != nil {
		return nil, err
	}
	defer wf.Close()
	state, err := wf.StateAt(context.Background(), contents, at)
	if errors.Is(err, host.ErrWorkflowChanged) {
		return nil, fmt.Errorf("%w; use --records to compare the records", err)
	}
	return state, err
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

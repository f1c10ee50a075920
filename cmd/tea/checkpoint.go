package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/the-edge-agent/tea/host"
)

type checkpointCmd struct {
	List runsListCmd       `cmd:"" help:"List the runs that have a checkpoint."`
	Show checkpointShowCmd `cmd:"" help:"Print the records of a run."`
	Diff checkpointDiffCmd `cmd:"" help:"Show what two runs did differently."`
	GC   checkpointGCCmd   `cmd:"" name:"gc" help:"Remove old runs."`
}

type checkpointShowCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	JSON  bool   `name:"json" help:"Print JSON."`
	keepFlags
}

// recordOutput is a record in JSON.
type recordOutput struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Path string    `json:"path,omitempty"`
	Body any       `json:"body,omitempty"`
}

// Run prints a run's records.
func (c *checkpointShowCmd) Run(a *app) error {
	runs, _, id, err := c.open(a, c.RunID)
	if err != nil {
		return err
	}
	contents, err := runs.Show(id)
	if err != nil {
		return err
	}
	records := make([]recordOutput, len(contents.Records))
	for i, rec := range contents.Records {
		body, err := host.RecordValue(rec)
		if err != nil {
			return err
		}
		records[i] = recordOutput{rec.Seq, rec.Time, rec.Kind, rec.Path, body}
	}
	if c.JSON {
		return writeJSON(a.stdout, map[string]any{"header": contents.Header, "records": records, "notes": contents.Notes})
	}
	h := contents.Header
	fmt.Fprintf(a.stdout, "run %s of %s, format %d, %d records\n", h.RunID, h.Workflow, h.Format, len(records))
	for _, note := range contents.Notes {
		fmt.Fprintf(a.stdout, "note: %s\n", note)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tTIME\tKIND\tPATH\tBODY")
	for _, rec := range records {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", rec.Seq, rec.Time.Local().Format("15:04:05.000"), rec.Kind, rec.Path, clip(shown(rec.Body)))
	}
	return w.Flush()
}

// clip cuts a text to what fits on a line; --json has all of it.
func clip(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

type checkpointDiffCmd struct {
	A    string `arg:"" help:"One run."`
	B    string `arg:"" help:"The other run."`
	JSON bool   `name:"json" help:"Print JSON."`
	keepFlags
}

// Run compares two runs.
func (c *checkpointDiffCmd) Run(a *app) error {
	var contents [2]*host.RunContents
	for i, run := range []string{c.A, c.B} {
		runs, _, id, err := c.open(a, run)
		if err != nil {
			return err
		}
		if contents[i], err = runs.Show(id); err != nil {
			return err
		}
	}
	differences, err := host.CompareRuns(contents[0], contents[1])
	if err != nil {
		return err
	}
	if c.JSON {
		if differences == nil {
			differences = []host.Difference{}
		}
		return writeJSON(a.stdout, differences)
	}
	for _, d := range differences {
		name := d.Kind
		if d.Path != "" {
			name += " " + d.Path
		}
		switch {
		case d.OnlyA:
			fmt.Fprintf(a.stdout, "- %s: %s\n", name, clip(asJSON(d.A)))
		case d.OnlyB:
			fmt.Fprintf(a.stdout, "+ %s: %s\n", name, clip(asJSON(d.B)))
		default:
			fmt.Fprintf(a.stdout, "~ %s: %s: %s -> %s\n", name, d.Key, clip(asJSON(d.A)), clip(asJSON(d.B)))
		}
	}
	return nil
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

type checkpointGCCmd struct {
	Keep     *int  `placeholder:"N" help:"Keep this many runs that are done. Default: 100."`
	MaxAge   *age  `placeholder:"30d" help:"Remove runs that are done and older than this. Default: 30d."`
	MaxBytes *size `placeholder:"256MB" help:"Remove the oldest runs that are done beyond this size. Default: 256MB."`
	DryRun   bool  `help:"Only say what would be removed."`
	keepFlags
}

// Run removes old runs and prints their ids.
func (c *checkpointGCCmd) Run(a *app) error {
	dir, err := c.dir(a)
	if err != nil {
		return err
	}
	runs, err := host.OpenRuns(dir)
	if err != nil {
		return err
	}
	remove := runs.Prune
	if c.DryRun {
		remove = runs.Prunable
	}
	ids, err := remove(c.policy())
	for _, id := range ids {
		fmt.Fprintln(a.stdout, id)
	}
	return err
}

// policy lays the flags over the default. The smallest limits that the host
// knows stand for 0, which it takes for none.
func (c *checkpointGCCmd) policy() host.PrunePolicy {
	p := host.DefaultPrunePolicy()
	if c.Keep != nil {
		p.MaxCount = *c.Keep
		if p.MaxCount <= 0 {
			p.MaxAge = 1
		}
	}
	if c.MaxAge != nil {
		p.MaxAge = max(1, time.Duration(*c.MaxAge))
	}
	if c.MaxBytes != nil {
		p.MaxBytes = max(1, int64(*c.MaxBytes))
	}
	return p
}

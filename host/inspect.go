package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/the-edge-agent/tea/host/internal/inspect"
	"github.com/the-edge-agent/tea/host/internal/runhtml"
)

// InspectFormats are the formats of [Workflow.Inspect].
func InspectFormats() []string { return inspect.Formats() }

// Inspect draws the workflow's graph in one of [InspectFormats]. The error reports
// an unknown format.
func (wf *Workflow) Inspect(format string) ([]byte, error) {
	return inspect.New(wf.graph).Draw(format)
}

// WriteHTML writes a report of a run as one page of HTML: the graph coloured by
// status, a timeline, tokens, errors. The page shows the run's stored events,
// in which secrets are masked. If wf is nil, it has the note in place of the
// graph.
func (r *Runs) WriteHTML(w io.Writer, run string, wf *Workflow, note string) error {
	entry, err := r.Entry(run)
	if err != nil {
		return err
	}
	page := runhtml.New()
	page.Run, page.Workflow, page.Status = entry.ID, entry.Workflow, string(entry.Status)
	page.StartedAt, page.UpdatedAt, page.Note = entry.StartedAt, entry.UpdatedAt, note
	if wf != nil {
		page.Diagram = inspect.New(wf.graph)
	}
	err = r.Events(run, 0, func(_ int64, line []byte) error {
		var e runhtml.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read an event of run %s: %w", entry.ID, err)
		}
		page.Add(e)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a run killed at its start has no events
		return err
	}
	return page.Write(w)
}

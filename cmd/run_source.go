package teacmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/report"
	"github.com/the-edge-agent/tea/cmd/internal/runpage"
	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

// runSource has runs: a directory, a server of `tea serve`, or an engine.
type runSource interface {
	// list returns the runs, the newest first, and what --json prints of them.
	list() (runs []checkpoints.Entry, form any, err error)
	show(id string) (*runView, error)
	// events calls fn with the events of a run after the one numbered after, as JSON
	// that is valid only during the call. With follow it continues until the run ends.
	events(id string, after int64, follow bool, fn func(line []byte) error) error
	// node describes the last execution of a node; nil if there is none.
	node(id, name string) (*runview.Node, error)
}

// listRuns prints the runs.
func (a *app) listRuns(s runSource, asJSON bool) error {
	list, form, err := s.list()
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, form)
	}
	// The id begins with the time of the start.
	rows := make([][]string, len(list))
	head := []string{"RUN", "WORKFLOW", "STATUS", "NODE", "UPDATED"}
	if slices.ContainsFunc(list, func(r checkpoints.Entry) bool { return r.Question != "" }) {
		head = append(head, "QUESTION")
	}
	for i, r := range list {
		row := []string{r.ID, r.Workflow, string(r.Status), r.Node, when(r.UpdatedAt), clip(inLine(r.Question))}
		if r.Problem != "" {
			row = []string{r.ID, "", "unreadable", "", r.Problem, ""}
		}
		rows[i] = row[:len(head)]
	}
	return a.table(head, rows)
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// showRun prints one run.
func (a *app) showRun(s runSource, id string, asJSON bool) error {
	view, err := s.show(id)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, view.form)
	}
	return a.table(nil, view.run.rows())
}

// showNode prints one execution of a node.
func (a *app) showNode(s runSource, id, name string, asJSON bool) error {
	n, err := s.node(id, name)
	switch {
	case err != nil:
		return err
	case n == nil:
		return usageErrorf("--node: the run has no events for node %q; `tea runs events %s` lists the paths of its nodes", name, id)
	case asJSON:
		return writeJSON(a.stdout, n)
	}
	err = a.table(nil, n.Rows())
	for _, part := range []struct {
		name  string
		value any
	}{{"parameters", n.Params}, {"result", n.Result}} {
		if err == nil && part.value != nil {
			fmt.Fprintf(a.stdout, "\n%s\n", part.name)
			err = writeJSON(a.stdout, part.value)
		}
	}
	return err
}

// printEvents prints the events of a run.
func (a *app) printEvents(s runSource, id string, after int64, follow bool) error {
	return s.events(id, after, follow, func(line []byte) error {
		_, err := a.stdout.Write(append(bytes.Clone(escapeJSON(line)), '\n'))
		return err
	})
}

// runOutput describes a run. It is the JSON form of a run of a directory or an engine.
type runOutput struct {
	checkpoints.Entry
	checkpoints.Failure
	Pending []flow.Interrupt `json:"pending"`
	Notes   []string         `json:"notes,omitempty"`
	Files   []runview.File   `json:"files,omitempty"`
	// queued and parked are the reasons of a status; resume is the command that
	// resumes the run.
	queued, parked, resume string
}

// rows describe the run for people.
func (out *runOutput) rows() [][]string {
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
	row("queued because", out.queued)
	row("parked", out.parked)
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
	for _, f := range out.Files {
		row("file", fmt.Sprintf("%s (%d bytes, written by %s)", f.File, f.Written, f.Path))
	}
	for _, note := range out.Notes {
		row("note", note)
	}
	for _, i := range out.Pending {
		row("waits for", i.ID)
		name := "question"
		for line := range strings.SplitSeq(strings.TrimSpace(i.Question), "\n") {
			row(name, line)
			name = ""
		}
		row("answer by", report.Deadline(i))
	}
	if !slices.Contains([]flow.Status{flow.Done, flow.Running, "queued"}, out.Status) {
		row("resume with", out.resume)
	}
	return rows
}

// runView is the part of a run that commands show.
type runView struct {
	run *runOutput
	// form is what --json prints.
	form any
	// load loads its workflow.
	load loader
	// events calls a function with each event so far, as JSON that is valid only
	// during the call.
	events func(fn func(line []byte) error) error
	// state returns the last state, with masked secrets. It is nil if the source has no state.
	state func(wf *host.Workflow) (map[string]any, error)
}

// view returns the view of a run. The flags are part of its resume command.
func (a *app) view(run *runOutput, f *runFlags) *runView {
	run.resume = f.resumeCommand(&flow.Result{RunID: run.ID, Checkpoint: run.Path, Pending: run.Pending}, a.mask)
	return &runView{run: run, form: run}
}

// draw draws the graph with the statuses of the nodes in each of the formats. It calls
// pass with each event.
func (v *runView) draw(wf *host.Workflow, formats []string, pass func(line []byte)) ([][]byte, error) {
	graph := wf.RunGraph()
	err := v.events(func(line []byte) error {
		pass(line)
		return graph.Add(line)
	})
	if err != nil {
		return nil, err
	}
	var list [][]byte
	for _, format := range formats {
		drawing, err := graph.Inspect(format, v.run.Status == flow.Running)
		if err != nil {
			return nil, err
		}
		list = append(list, drawing)
	}
	return list, nil
}

// showFlags are the flags of the commands that show a run.
type showFlags struct {
	Node string `placeholder:"NODE" help:"Show the last execution of a node, by its name or path: parameters, result, error, attempts, logs."`
	JSON bool   `name:"json" xor:"form" help:"Print JSON."`
	HTML bool   `name:"html" xor:"form" help:"Print an HTML page: the graph coloured by status, a timeline, errors and events."`
	pluginFlags
	reportFlags
}

// show prints a run. The HTML page works without the workflow, or with a changed one.
func (f *showFlags) show(a *app, s runSource, id string) error {
	if f.Node != "" && f.HTML {
		return usageErrorf("--node and --html cannot be combined; the page shows all nodes")
	}
	if f.Node != "" {
		return a.showNode(s, id, f.Node, f.JSON)
	}
	if !f.HTML {
		return a.showRun(s, id, f.JSON)
	}
	v, err := s.show(id)
	if err != nil {
		return err
	}
	a.setReport(f.reportFlags)
	h, err := a.openHost(f.pluginFlags, f.reportFlags, readPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	report := runpage.Report{Run: v.run, Events: []json.RawMessage{}}
	keep := func(line []byte) { report.Events = append(report.Events, bytes.Clone(line)) }
	wf, err := v.load(h, nil)
	if err != nil {
		report.Note = "The graph is missing: " + err.Error()
		v.addFileNames(&report, "The workflow cannot be loaded, so the file is not in the report.")
		a.logger(f.reportFlags).Warn("the page has no graph: the workflow cannot be loaded", "error", err)
		err = v.events(func(line []byte) error {
			keep(line)
			return nil
		})
	} else {
		defer wf.Close()
		err = v.addDrawings(wf, &report, keep)
		if mask, maskErr := wf.Mask(nil); err == nil && maskErr == nil {
			report.Source, err = wf.Listing(v.run.Digest, nil, mask)
		}
		v.addResult(wf, &report)
	}
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := runpage.Write(&page, report); err != nil {
		return err
	}
	_, err = a.stdout.Write(page.Bytes())
	return err
}

// addDrawings adds the drawings of the graph to a report. It calls keep with each event.
func (v *runView) addDrawings(wf *host.Workflow, report *runpage.Report, keep func(line []byte)) error {
	forms := []string{"", "-horizontal", "-collapsed", "-horizontal-collapsed"}
	formats := make([]string, len(forms))
	for i, form := range forms {
		formats[i] = "svg" + form
	}
	drawings, err := v.draw(wf, formats, keep)
	if err != nil {
		return err
	}
	report.Graph, report.Drawings = string(drawings[0]), map[string]string{}
	for i, form := range forms[1:] {
		report.Drawings[form] = string(drawings[i+1])
	}
	return nil
}

// maxReportFile bounds the size of a file in a report, and maxReportFiles that of all
// files, in bytes.
const (
	maxReportFile  = 1 << 20
	maxReportFiles = 8 << 20
)

// addResult adds the last state and the files of a run to its report. A file
// that cannot be read has a note.
func (v *runView) addResult(wf *host.Workflow, report *runpage.Report) {
	if v.state != nil {
		if state, err := v.state(wf); err == nil {
			report.State = state
		}
	}
	root, err := wf.FileRoot(nil)
	if err != nil {
		v.addFileNames(report, "The settings of the workflow need secrets, so the file is not in the report.")
		return
	}
	defer func() { _ = root.Close() }() // it was only read
	runview.Inspect(root, v.run.Files)
	left := int64(maxReportFiles)
	for _, f := range v.run.Files {
		shown := runpage.File{File: f}
		switch {
		case f.Size == nil:
		case f.Secrets:
			shown.Omitted = "The file has secrets, so its content is not in the report."
		case *f.Size > min(left, maxReportFile):
			shown.Omitted = "The file is too large for the report."
		default:
			if shown.Content, err = root.Read(f.File, maxReportFile); err == nil {
				left -= int64(len(shown.Content))
			}
		}
		report.Files = append(report.Files, shown)
	}
}

// addFileNames adds the files of a run to its report without their content. why is
// their note.
func (v *runView) addFileNames(report *runpage.Report, why string) {
	for _, f := range v.run.Files {
		f.Note = why
		report.Files = append(report.Files, runpage.File{File: f})
	}
}

// drawRun prints the graph of a run.
func (f *drawFlags) drawRun(a *app, s runSource, id string, plugins pluginFlags, flags reportFlags) error {
	v, err := s.show(id)
	if err != nil {
		return err
	}
	h, err := a.openHost(plugins, flags, readPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	wf, err := v.load(h, nil)
	if err != nil {
		return err
	}
	defer wf.Close()
	drawings, err := v.draw(wf, []string{f.format()}, func([]byte) {})
	if err != nil {
		return err
	}
	return f.print(a, drawings[0])
}

package teacmd

import (
	"bytes"
	"encoding/json"

	"github.com/the-edge-agent/tea/cmd/internal/runpage"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// runView is what commands show of a run.
type runView struct {
	run *runOutput
	// load loads its workflow.
	load loader
	// events calls a function with each event so far, as JSON that is valid only
	// during the call.
	events func(fn func(line []byte) error) error
}

// draw draws the graph with the statuses of the nodes, and passes on the events.
func (v *runView) draw(wf *host.Workflow, format string, pass func(line []byte)) ([]byte, error) {
	graph := wf.RunGraph()
	err := v.events(func(line []byte) error {
		pass(line)
		return graph.Add(line)
	})
	if err != nil {
		return nil, err
	}
	return graph.Inspect(format, v.run.Status == flow.Running)
}

// html prints the run as a page. The workflow can be missing or changed.
func (v *runView) html(a *app, plugins pluginFlags, flags reportFlags) error {
	a.setReport(flags)
	h, err := a.openHost(plugins, flags, readPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	report := runpage.Report{Run: v.run, Events: []json.RawMessage{}}
	keep := func(line []byte) { report.Events = append(report.Events, bytes.Clone(line)) }
	wf, err := v.load(h, nil)
	if err != nil {
		report.Note = "The graph is missing: " + err.Error()
		a.logger(flags).Warn("the page has no graph: the workflow cannot be loaded", "error", err)
		err = v.events(func(line []byte) error {
			keep(line)
			return nil
		})
	} else {
		defer wf.Close()
		var svg []byte
		svg, err = v.draw(wf, "svg", keep)
		report.Graph = string(svg)
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

// inspect prints the graph.
func (v *runView) inspect(a *app, format *drawFlags, plugins pluginFlags, flags reportFlags) error {
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
	drawing, err := v.draw(wf, format.format(), func([]byte) {})
	if err != nil {
		return err
	}
	return format.print(a, drawing)
}

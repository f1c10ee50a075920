package host

import (
	"encoding/json"
	"fmt"

	"github.com/the-edge-agent/tea/host/internal/inspect"
)

// Inspect draws the workflow's graph as text, json, dot, mermaid or svg. The error
// reports an unknown format.
func (wf *Workflow) Inspect(format string) ([]byte, error) {
	return inspect.New(wf.graph).Draw(format)
}

// RunGraph is a workflow's graph with the statuses of its nodes in a run. It is not
// safe for concurrent use.
type RunGraph struct {
	diagram  *inspect.Diagram
	statuses *inspect.Statuses
}

// RunGraph returns the graph of a run of the workflow, before its first event.
func (wf *Workflow) RunGraph() *RunGraph {
	return &RunGraph{inspect.New(wf.graph), inspect.NewStatuses()}
}

// Add adds the next event of the run, as JSON. It returns an error if the text is not
// an event.
func (g *RunGraph) Add(event []byte) error {
	var e inspect.Event
	if err := json.Unmarshal(event, &e); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	g.statuses.Add(e)
	return nil
}

// Inspect draws the graph in a format of [Workflow.Inspect]; only svg and json show
// statuses. If the run is no longer running, nodes that have not ended are shown
// as stopped. The error reports an unknown format.
func (g *RunGraph) Inspect(format string, running bool) ([]byte, error) {
	g.statuses.Mark(g.diagram, running)
	return g.diagram.Draw(format)
}

// DrawGraph draws a graph in Cytoscape JSON, as graph.export writes it, in a format
// of [Workflow.Inspect]. The error names the graph and reports invalid text, an unknown
// format, or a graph that is too large to draw.
func DrawGraph(name string, text []byte, format string) ([]byte, error) {
	d, err := inspect.FromCytoscape(name, text)
	if err != nil {
		return nil, err
	}
	return d.Draw(format)
}

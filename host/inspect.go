package host

import "github.com/the-edge-agent/tea/host/internal/inspect"

// InspectFormats are the formats of [Workflow.Inspect].
func InspectFormats() []string { return inspect.Formats() }

// Inspect draws the workflow's graph as text, json, dot, mermaid or svg.
func (wf *Workflow) Inspect(format string) ([]byte, error) {
	return inspect.New(wf.graph).Draw(format)
}

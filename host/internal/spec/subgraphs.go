package spec

// Subgraphs lists the workflows that this one names in its nodes, loops and
// maps included, in the order written.
func (w *Workflow) Subgraphs() []*Workflow {
	var out []*Workflow
	for _, body := range subgraphs(w.Nodes) {
		if body.Workflow != nil {
			out = append(out, body.Workflow)
		}
	}
	return out
}

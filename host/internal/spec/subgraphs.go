package spec

// Subgraphs lists the workflows that this one names in its nodes, loops and
// maps included, in the order written.
func (w *Workflow) Subgraphs() []*Workflow {
	var out []*Workflow
	var visit func(b Body)
	visitAll := func(nodes []*Node) {
		for _, n := range nodes {
			visit(n.Body)
		}
	}
	visit = func(b Body) {
		switch b := b.(type) {
		case *SubgraphBody:
			if b.Workflow != nil {
				out = append(out, b.Workflow)
			}
		case *StepsBody:
			visitAll(b.Steps)
		case *LoopBody:
			visitAll(b.Nodes)
		case *MapBody:
			visit(b.Do)
		}
	}
	visitAll(w.Nodes)
	return out
}

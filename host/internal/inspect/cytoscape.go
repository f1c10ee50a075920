package inspect

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Limits of a graph for a readable drawing.
const (
	maxDrawnNodes = 300
	maxDrawnEdges = 1000
)

// typeStyle has the colours of the types of nodes, repeated after six.
const typeStyle = `.tea .type0>.bar{fill:#3182ce}.tea .type1>.bar{fill:#dd6b20}.tea .type2>.bar{fill:#38a169}` +
	`.tea .type3>.bar{fill:#805ad5}.tea .type4>.bar{fill:#d69e2e}.tea .type5>.bar{fill:#d53f8c}`

const colours = 6

// FromCytoscape returns the diagram of a graph in Cytoscape JSON, as graph.export
// writes it: a box for each entity with its type, coloured by type, and an arrow
// with its type for each relation.
func FromCytoscape(name string, text []byte) (*Diagram, error) {
	var file struct {
		Elements *struct {
			Nodes []struct {
				Data struct{ ID, Type string }
			}
			Edges []struct {
				Data struct{ Source, Target, Type string }
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read the graph in %s: %w", name, err)
	}
	if file.Elements == nil {
		return nil, fmt.Errorf("%s is not a graph in the JSON of Cytoscape: it has no elements.nodes and elements.edges", name)
	}
	nodes, edges := file.Elements.Nodes, file.Elements.Edges
	if len(nodes) > maxDrawnNodes || len(edges) > maxDrawnEdges {
		return nil, fmt.Errorf("%s has %d nodes and %d edges; a drawing has at most %d and %d: export a part of the graph, with entity_ids and depth", name, len(nodes), len(edges), maxDrawnNodes, maxDrawnEdges)
	}
	d := &Diagram{Name: name, Nodes: make([]Node, 0, len(nodes)), Edges: make([]Edge, 0, len(edges)), Style: typeStyle}
	names := make(map[string]string, len(nodes))
	var types []string
	for _, n := range nodes {
		if _, ok := names[n.Data.ID]; ok {
			return nil, fmt.Errorf("%s has two nodes with the id %q", name, n.Data.ID)
		}
		shown := n.Data.ID
		if shown == start || shown == end {
			shown += " " // these names have a meaning in workflows
		}
		names[n.Data.ID] = shown
		at := slices.Index(types, n.Data.Type)
		if at < 0 {
			at = len(types)
			types = append(types, n.Data.Type)
		}
		d.Nodes = append(d.Nodes, Node{Name: shown, Kind: "entity", Uses: oneLine(n.Data.Type), Class: fmt.Sprintf("type%d", at%colours)})
	}
	for i, e := range edges {
		for _, id := range []string{e.Data.Source, e.Data.Target} {
			if _, ok := names[id]; !ok {
				return nil, fmt.Errorf("%s: the edge %d is between nodes of which %q is not in the file", name, i, id)
			}
		}
		edge := Edge{From: names[e.Data.Source], To: names[e.Data.Target], Kind: "relation", Label: oneLine(e.Data.Type)}
		if !slices.Contains(d.Edges, edge) { // the same relation at another time
			d.Edges = append(d.Edges, edge)
		}
	}
	return d, nil
}

package inspect

import "testing"

// No edge is drawn through a box that it does not belong to, be it one that
// skips nodes, one that leads back or one beside a tall neighbour.
func TestEdgesPassBesideBoxes(t *testing.T) {
	t.Parallel()
	tall := &Diagram{Nodes: []Node{{Name: "x"}, {Name: "y"}}, Edges: []Edge{{From: start, To: "x"}, {From: "x", To: "y"}}}
	d := &Diagram{
		Nodes: []Node{{Name: "a"}, {Name: "b"}, {Name: "c", Body: tall}, {Name: "d"}, {Name: "e"}},
		Edges: []Edge{
			{From: start, To: "a"},
			{From: "a", To: "b"},
			{From: "a", To: "c"},
			{From: "a", To: "e"},
			{From: "b", To: "d"},
			{From: "c", To: "d"},
			{From: "d", To: "e"},
			{From: "e", To: end},
			{From: "b", To: end},
			{From: "d", To: "a"},
			{From: "b", To: "b"},
			{From: "e", To: "c"},
		},
	}
	l := newLayout(d)
	for i, way := range l.ways {
		edge := d.Edges[i]
		for _, c := range curves(way) {
			for quarters := range 5 {
				p := c.at(quarters)
				if p.x < 0 || p.x > l.w || p.y < 0 || p.y > l.h {
					t.Errorf("the edge from %s to %s leaves the drawing at %v", edge.From, edge.To, p)
				}
				for _, b := range l.order {
					if p.x > b.x && p.x < b.x+b.w && p.y > b.y && p.y < b.y+b.h {
						t.Errorf("the edge from %s to %s crosses %s at %v", edge.From, edge.To, b.name, p)
					}
				}
			}
		}
		for _, lane := range way[1 : len(way)-1] {
			for _, b := range l.order {
				if b.row == lane.row && lane.x > b.x && lane.x < b.x+b.w {
					t.Errorf("the edge from %s to %s passes through %s", edge.From, edge.To, b.name)
				}
			}
		}
	}
}

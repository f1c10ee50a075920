package inspect

import "testing"

// No edge is drawn through a box that it does not belong to, be it one that
// skips nodes, one that leads back or one next to a tall neighbour.
func TestEdgesDoNotCrossBoxes(t *testing.T) {
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
	for _, horizontal := range []bool{false, true} {
		edgesDoNotCross(t, newLayout(d, horizontal), d)
	}
}

func edgesDoNotCross(t *testing.T, l *layout, d *Diagram) {
	t.Helper()
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

// Labels lie neither on a line nor on a box nor on each other.
func TestLabelsDoNotOverlap(t *testing.T) {
	t.Parallel()
	d := &Diagram{
		Nodes: []Node{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}},
		Edges: []Edge{
			{From: start, To: "a"},
			{From: "a", To: "b", Kind: when, Label: "state.first and state.second"},
			{From: "a", To: "c", Kind: when, Label: "state.third"},
			{From: "a", To: "d", Kind: next, Label: otherwise},
			{From: "b", To: "d"},
			{From: "c", To: "d"},
			{From: "d", To: "a", Kind: when, Label: "state.again"},
			{From: "d", To: end, Kind: next, Label: otherwise},
		},
	}
	for _, horizontal := range []bool{false, true} {
		labelsDoNotOverlap(t, newLayout(d, horizontal))
	}
}

func labelsDoNotOverlap(t *testing.T, l *layout) {
	t.Helper()
	labels := 0
	for _, row := range l.rows {
		for i, b := range row {
			if b.text == "" {
				continue
			}
			labels++
			for j, other := range row {
				if i != j && other.x < b.x+b.w && b.x < other.x+other.w {
					t.Errorf("the label %q lies on %q%q", b.text, other.name, other.text)
				}
			}
			for _, way := range l.ways {
				for _, c := range curves(way) {
					for quarters := range 5 {
						p := c.at(quarters)
						if p.x > b.x && p.x < b.x+b.w && p.y > b.y && p.y < b.y+b.h {
							t.Errorf("a line crosses the label %q at %v", b.text, p)
						}
					}
				}
			}
		}
	}
	if labels != 5 {
		t.Errorf("%d labels, want 5", labels)
	}
}

// at is the point of the curve after some quarters of it.
func (c curve) at(quarters int) point {
	t := float64(quarters) / 4
	s := 1 - t
	along := func(p0, p1, p2, p3 int) int {
		return int(s*s*s*float64(p0) + 3*s*s*t*float64(p1) + 3*s*t*t*float64(p2) + t*t*t*float64(p3))
	}
	return point{
		along(c.from.x, c.from.x, c.to.x, c.to.x),
		along(c.from.y, c.from.y+c.fromBend, c.to.y-c.toBend, c.to.y),
	}
}

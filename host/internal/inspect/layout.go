package inspect

import (
	"slices"
	"unicode/utf8"
)

// Measures of the drawing, in pixels.
const (
	charWidth  = 7
	lineHeight = 16
	padding    = 10
	gapX       = 40
	gapY       = 56
)

// box is a node with its place; x and y are its upper left corner.
type box struct {
	name       string
	node       *Node
	labels     []string
	x, y, w, h int
	// inner is the layout of the node's body.
	inner *layout
}

// layout is a diagram with places: layers from top to bottom, each a row.
type layout struct {
	diagram *Diagram
	boxes   map[string]*box
	order   []*box
	w, h    int
}

func newLayout(d *Diagram) *layout {
	l := &layout{diagram: d, boxes: map[string]*box{}}
	for _, name := range d.names() {
		b := &box{name: name, labels: []string{endName(name)}}
		if i := slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == name }); i >= 0 {
			b.node = &d.Nodes[i]
			b.labels = b.node.labels()
		}
		b.measure()
		l.boxes[name] = b
		l.order = append(l.order, b)
	}
	l.place(l.layers())
	return l
}

func (b *box) measure() {
	for _, label := range b.labels {
		b.w = max(b.w, utf8.RuneCountInString(label)*charWidth)
	}
	b.w += 2 * padding
	b.h = len(b.labels)*lineHeight + 2*padding
	if b.node != nil && b.node.Body != nil {
		b.inner = newLayout(b.node.Body)
		b.w = max(b.w, b.inner.w+2*padding)
		b.h += b.inner.h + padding
	}
}

// layers puts each node below all nodes that lead to it, edges that lead back
// aside.
func (l *layout) layers() [][]*box {
	back := l.backEdges()
	level := map[string]int{}
	// The longest way from the top; without back edges it ends.
	for changed := true; changed; {
		changed = false
		for i, e := range l.diagram.Edges {
			if !back[i] && level[e.To] < level[e.From]+1 {
				level[e.To] = level[e.From] + 1
				changed = true
			}
		}
	}
	bottom := 0
	for _, b := range l.order {
		bottom = max(bottom, level[b.name])
	}
	if b := l.boxes[end]; b != nil {
		level[end] = bottom
	}
	rows := make([][]*box, bottom+1)
	for _, b := range l.order {
		rows[level[b.name]] = append(rows[level[b.name]], b)
	}
	return slices.DeleteFunc(rows, func(row []*box) bool { return len(row) == 0 })
}

// backEdges finds the edges that close a circle, by a walk into the depth.
func (l *layout) backEdges() map[int]bool {
	leaving := map[string][]int{}
	for i, e := range l.diagram.Edges {
		leaving[e.From] = append(leaving[e.From], i)
	}
	const open, closed = 1, 2
	mark, back := map[string]int{}, map[int]bool{}
	var walk func(name string)
	walk = func(name string) {
		mark[name] = open
		for _, i := range leaving[name] {
			switch to := l.diagram.Edges[i].To; mark[to] {
			case open:
				back[i] = true
			case 0:
				walk(to)
			}
		}
		mark[name] = closed
	}
	for _, b := range l.order {
		if mark[b.name] == 0 {
			walk(b.name)
		}
	}
	return back
}

// place gives every box its corner; rows are centred.
func (l *layout) place(rows [][]*box) {
	widths := make([]int, len(rows))
	for i, row := range rows {
		for _, b := range row {
			widths[i] += b.w + gapX
		}
		widths[i] -= gapX
		l.w = max(l.w, widths[i])
	}
	y := 0
	for i, row := range rows {
		x, height := (l.w-widths[i])/2, 0
		for _, b := range row {
			b.x, b.y = x, y
			x += b.w + gapX
			height = max(height, b.h)
		}
		y += height + gapY
	}
	l.h = max(0, y-gapY)
}

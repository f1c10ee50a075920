package inspect

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Measures of the drawing, in pixels.
const (
	charWidth  = 7
	nameWidth  = 8 // of a letter in bold
	labelWidth = 6 // of a letter next to an arrow
	lineHeight = 16
	padding    = 10
	gapX       = 40
	gapY       = 56 // between rows of nodes
	gapLabel   = 32 // above and below a row of labels
)

// box is a node with its position, or a lane; x and y are its upper left
// corner.
type box struct {
	name string
	// text is the label of the edge that passes through a lane, drawn next to it.
	text       string
	node       *Node
	labels     []string
	x, y, w, h int
	// inner is the layout of the node's body.
	inner *layout

	row int
	// bottom is the lower end of the row.
	bottom int
	// above are the predecessors of the box; want is their middle.
	above []*box
	want  int
}

// lane is the gap in a row through which edges to a node pass, up or down,
// without crossing boxes.
type lane struct {
	to  string
	row int
	up  bool
}

// layout is a diagram with positions: layers from top to bottom, each a row. For a
// horizontal drawing, the layout swaps the width and height of each box, and the drawing
// swaps x and y.
type layout struct {
	diagram    *Diagram
	horizontal bool
	boxes      map[string]*box
	order      []*box
	lanes      map[lane]*box
	rows       [][]*box
	// labelRows marks the rows that contain the labels of the edges from the row
	// above.
	labelRows map[int]bool
	// ways has the boxes that each edge passes through, including its ends.
	ways [][]*box
	w, h int
}

func newLayout(d *Diagram, horizontal bool) *layout {
	l := &layout{diagram: d, horizontal: horizontal, boxes: map[string]*box{}, lanes: map[lane]*box{}, labelRows: map[int]bool{}}
	for _, name := range d.names() {
		b := &box{name: name, labels: []string{endName(name)}}
		if i := slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == name }); i >= 0 {
			b.node = &d.Nodes[i]
			b.labels = b.node.labels()
		}
		b.measure(horizontal)
		b.w, b.h = l.drawn(b.w, b.h)
		l.boxes[name] = b
		l.order = append(l.order, b)
	}
	l.arrange()
	l.place()
	return l
}

// drawn swaps x and y, or width and height, if the drawing is horizontal.
func (l *layout) drawn(x, y int) (int, int) {
	if l.horizontal {
		return y, x
	}
	return x, y
}

func (b *box) measure(horizontal bool) {
	for i, label := range b.labels {
		width := charWidth
		if i == 0 {
			width = nameWidth
		}
		b.w = max(b.w, cells(label)*width)
	}
	b.w += 2 * padding
	b.h = len(b.labels)*lineHeight + 2*padding
	if b.node != nil && b.node.Body != nil {
		b.inner = newLayout(b.node.Body, horizontal)
		w, h := b.inner.drawn(b.inner.w, b.inner.h)
		b.w = max(b.w, w+2*padding)
		b.h += h + padding
	}
}

// cells returns the width of a text in letters: a Chinese character or an emoji
// has the width of two.
func cells(text string) int {
	n := utf8.RuneCountInString(text)
	for _, r := range text {
		if r >= 0x2e80 {
			n++
		}
	}
	return n
}

func (b *box) isLane() bool { return b.name == "" }

// axis returns the x position at which edges meet the box, from its left side:
// the middle of a node, the left side of a label.
func (b *box) axis() int {
	if b.text != "" {
		return 0
	}
	return b.w / 2
}

func (b *box) middle() int { return b.x + b.axis() }

// point is a position in the drawing.
type point struct{ x, y int }

// curve connects two points and is vertical at both, for the number of pixels
// of the bend, upwards if it is negative.
type curve struct {
	from, to         point
	fromBend, toBend int
}

// turn is the vertical extent of a curve where it turns back.
const turn = gapLabel * 3 / 4

// curves returns the parts of a path between the boxes that it passes.
func curves(way []*box) []curve {
	up := way[0].row == way[1].row
	var out []curve
	for i, b := range way[1:] {
		a := way[i]
		c := curve{from: point{a.middle(), a.bottom}, to: point{b.middle(), b.y}}
		if up && a.isLane() {
			c.from.y = a.y
		}
		if up && b.isLane() {
			c.to.y = b.bottom
		}
		switch half := (c.to.y - c.from.y) / 2; {
		case !up:
			c.fromBend, c.toBend = half, half
		case a.isLane() && b.isLane():
			c.fromBend, c.toBend = half, half
		case a.isLane():
			c.fromBend, c.toBend = -turn, turn
		default:
			c.fromBend, c.toBend = turn, -turn
		}
		out = append(out, c)
	}
	return out
}

// pathData returns a path in SVG syntax.
func (l *layout) pathData(way []*box) string {
	var b strings.Builder
	straight := "V%d"
	if l.horizontal {
		straight = "H%d"
	}
	points := func(command string, list ...point) {
		b.WriteString(command)
		for i, p := range list {
			if i > 0 {
				b.WriteByte(' ')
			}
			x, y := l.drawn(p.x, p.y)
			fmt.Fprintf(&b, "%d %d", x, y)
		}
	}
	points("M", point{way[0].middle(), way[0].y + way[0].h})
	for _, c := range curves(way) {
		fmt.Fprintf(&b, straight, c.from.y)
		points("C", point{c.from.x, c.from.y + c.fromBend}, point{c.to.x, c.to.y - c.toBend}, c.to)
	}
	return b.String()
}

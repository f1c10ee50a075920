package inspect

import (
	"slices"
	"unicode/utf8"
)

// Measures of the drawing, in pixels.
const (
	charWidth  = 7
	nameWidth  = 8 // of a letter in bold
	labelWidth = 6 // of a letter beside an arrow
	lineHeight = 16
	padding    = 10
	gapX       = 40
	gapY       = 56 // between rows of nodes
	gapLabel   = 32 // above and below a row of labels
)

// box is a node with its place, or a lane; x and y are its upper left corner.
type box struct {
	name string
	// text is the label of the edge that passes through a lane, drawn beside it.
	text       string
	node       *Node
	labels     []string
	x, y, w, h int
	// inner is the layout of the node's body.
	inner *layout

	row int
	// bottom is where the row ends.
	bottom int
	// above are the boxes that lead here; want is the middle of them.
	above []*box
	want  int
}

// lane says where edges to a node pass through a row, up or down, without
// crossing what stands there.
type lane struct {
	to  string
	row int
	up  bool
}

// layout is a diagram with places: layers from top to bottom, each a row.
type layout struct {
	diagram *Diagram
	boxes   map[string]*box
	order   []*box
	lanes   map[lane]*box
	rows    [][]*box
	// labelRows marks the rows that hold the labels of the edges from the row
	// above.
	labelRows map[int]bool
	// ways are what each edge passes through, its ends included.
	ways [][]*box
	w, h int
}

func newLayout(d *Diagram) *layout {
	l := &layout{diagram: d, boxes: map[string]*box{}, lanes: map[lane]*box{}, labelRows: map[int]bool{}}
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
	l.arrange()
	l.place()
	return l
}

func (b *box) measure() {
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
		b.inner = newLayout(b.node.Body)
		b.w = max(b.w, b.inner.w+2*padding)
		b.h += b.inner.h + padding
	}
}

// cells is how many letters wide a text is: a Chinese sign, say, or a picture
// takes the room of two.
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

// axis is where edges meet the box, from its left side: the middle of a node,
// the left side of a label.
func (b *box) axis() int {
	if b.text != "" {
		return 0
	}
	return b.w / 2
}

func (b *box) middle() int { return b.x + b.axis() }

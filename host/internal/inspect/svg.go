package inspect

import (
	"bytes"
	"encoding/xml"
	"fmt"
)

const svgStyle = `rect{fill:#fff;stroke:#4a5568;rx:6}text{font:12px sans-serif;fill:#1a202c}.end rect{fill:#e2e8f0;rx:14}.body rect{fill-opacity:.4}` +
	`.name{font-weight:bold}path{fill:none;stroke:#4a5568;stroke-width:1.3}.parallel path,.map path{stroke-width:2.6}.fallback path{stroke-dasharray:5 4}.label{font-size:10px;fill:#2b6cb0}`

// svg draws boxes in layers with curved arrows.
func (d *Diagram) svg() []byte {
	l := newLayout(d)
	const margin = 60 // arrows that lead back swing out
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="%d %d %d %d">`+"\n",
		l.w+2*margin, l.h+2*padding, -margin, -padding, l.w+2*margin, l.h+2*padding)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", escape(d.Name), svgStyle)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" style="fill:#4a5568;stroke:none"/></marker></defs>` + "\n")
	l.svg(&b)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (l *layout) svg(b *bytes.Buffer) {
	for _, e := range l.diagram.Edges {
		l.svgEdge(b, e)
	}
	for _, box := range l.order {
		box.svg(b)
	}
}

func (b *box) svg(w *bytes.Buffer) {
	class := "node"
	switch {
	case b.node == nil:
		class = "end"
	case b.inner != nil:
		class = "body"
	}
	fmt.Fprintf(w, `<g class="%s"><rect x="%d" y="%d" width="%d" height="%d"/>`, class, b.x, b.y, b.w, b.h)
	for i, label := range b.labels {
		name := ""
		if i == 0 {
			name = ` class="name"`
		}
		fmt.Fprintf(w, `<text%s x="%d" y="%d" text-anchor="middle">%s</text>`, name, b.x+b.w/2, b.y+padding+lineHeight*i+12, escape(label))
	}
	if b.inner != nil {
		top := len(b.labels)*lineHeight + 2*padding
		fmt.Fprintf(w, "<g transform=\"translate(%d %d)\">\n", b.x+(b.w-b.inner.w)/2, b.y+top)
		b.inner.svg(w)
		w.WriteString("</g>")
	}
	w.WriteString("</g>\n")
}

func (l *layout) svgEdge(b *bytes.Buffer, e Edge) {
	from, to := l.boxes[e.From], l.boxes[e.To]
	x1, y1, x2, y2 := from.x+from.w/2, from.y+from.h, to.x+to.w/2, to.y
	path := fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, y1+gapY/2, x2, y2-gapY/2, x2, y2)
	labelX, labelY := (x1+x2)/2, (y1+y2)/2
	if to.y <= from.y { // back, around the right-hand side
		x1, x2 = from.x+from.w, to.x+to.w
		y1, y2 = from.y+from.h/2, to.y+to.h/2
		out := max(x1, x2) + 50
		path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, out, y1, out, y2, x2, y2)
		labelX, labelY = out-10, (y1+y2)/2
	}
	fmt.Fprintf(b, `<g class="%s"><path d="%s" marker-end="url(#tip)"/>`, e.Kind, path)
	if about := e.about(); about != "" {
		fmt.Fprintf(b, `<text class="label" x="%d" y="%d" text-anchor="middle">%s</text>`, labelX, labelY, escape(about))
	}
	b.WriteString("</g>\n")
}

// escape writes text for XML; what XML cannot hold becomes U+FFFD.
func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}

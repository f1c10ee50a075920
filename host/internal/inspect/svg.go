package inspect

import (
	"bytes"
	"encoding/xml"
	"fmt"
)

const svgStyle = `rect{fill:#fff;stroke:#4a5568;rx:6}text{font:12px sans-serif;fill:#1a202c}.end>rect{fill:#e2e8f0;rx:14}.body>rect{fill:#f7fafc}` +
	`.name{font-weight:bold}path{fill:none;stroke:#4a5568;stroke-width:1.3}.parallel,.map{stroke-width:2.6}.fallback{stroke-dasharray:5 4}` +
	`.label{font-size:10px;fill:#2b6cb0;stroke:#fff;stroke-width:3px;paint-order:stroke}`

// svg draws boxes in layers with curved arrows.
func (d *Diagram) svg() []byte {
	l := newLayout(d)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="%d %d %d %d">`+"\n",
		l.w+2*padding, l.h+2*padding, -padding, -padding, l.w+2*padding, l.h+2*padding)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", escape(d.Name), svgStyle)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="10" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" style="fill:#4a5568;stroke:none"/></marker></defs>` + "\n")
	l.svg(&b)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (l *layout) svg(b *bytes.Buffer) {
	for i, e := range l.diagram.Edges {
		fmt.Fprintf(b, `<path class="%s" d="%s" marker-end="url(#tip)"/>`+"\n", e.Kind, pathData(l.ways[i]))
	}
	for _, box := range l.order {
		box.svg(b)
	}
	labels := l.labels()
	for i, e := range l.diagram.Edges {
		if at, ok := labels[i]; ok {
			fmt.Fprintf(b, `<text class="label" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", at.x, at.y, escape(e.about()))
		}
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

// escape writes text for XML; what XML cannot hold becomes U+FFFD.
func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}

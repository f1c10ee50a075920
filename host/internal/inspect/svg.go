package inspect

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"unicode"
)

// svgStyle has colours for light and dark pages. The bar on the left of a node
// and its second line show its kind, the border shows its status in a run.
const svgStyle = `.tea{--page:#fff;--box:#fff;--body:#f7fafc;--end:#e2e8f0;--ink:#1a202c;--line:#4a5568;--label:#2b6cb0;` +
	`--action:#3182ce;--lua:#805ad5;--ask:#d69e2e;--inner:#319795;--pass:#a0aec0;--done:#2f855a;--failed:#c53030;--waiting:#b7791f}` +
	`@media(prefers-color-scheme:dark){.tea{--page:#171923;--box:#2d3748;--body:#1f2633;--end:#4a5568;--ink:#edf2f7;--line:#a0aec0;--label:#90cdf4;` +
	`--action:#63b3ed;--lua:#b794f4;--ask:#f6e05e;--inner:#4fd1c5;--pass:#718096;--done:#68d391;--failed:#fc8181;--waiting:#f6e05e}}` +
	`.tea .page{fill:var(--page)}.tea .box{fill:var(--box);stroke:var(--line);rx:6}.tea .end>.box{fill:var(--end);rx:14}.tea .body>.box{fill:var(--body)}` +
	`.tea text{font:12px sans-serif;fill:var(--ink)}.tea .name{font-weight:bold}.tea .bar{fill:var(--inner);rx:2}.tea .action>.bar{fill:var(--action)}` +
	`.tea .lua>.bar{fill:var(--lua)}.tea .ask>.bar{fill:var(--ask)}.tea .pass>.bar{fill:var(--pass)}.tea .pass>.box{stroke-dasharray:4 3}` +
	`.tea .map>.box,.tea .loop>.box{stroke-width:2.2}.tea .done>.box{stroke:var(--done);stroke-width:2.2}.tea .failed>.box{stroke:var(--failed);stroke-width:3}` +
	`.tea .running>.box{stroke:var(--action);stroke-width:3}.tea .stopped>.box{stroke:var(--failed);stroke-dasharray:5 4}` +
	`.tea .waiting>.box{stroke:var(--waiting);stroke-width:3}.tea .skipped,.tea .unreached{opacity:.45}` +
	`.tea .edge{fill:none;stroke:var(--line);stroke-width:1.3}.tea .tip{fill:var(--line)}.tea .edge.parallel,.tea .edge.map{stroke-width:2.6}` +
	`.tea .edge.fallback,.tea .edge.repeat{stroke-dasharray:5 4}.tea .label{font-size:10px;fill:var(--label)}`

// svg draws boxes in layers with curved arrows.
func (d *Diagram) svg(horizontal bool) []byte {
	l := newLayout(d, horizontal)
	w, h := l.drawn(l.w, l.h)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg class="tea" xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="%d %d %d %d">`+"\n",
		w+2*padding, h+2*padding, -padding, -padding, w+2*padding, h+2*padding)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s%s</style>\n", escape(d.Name), svgStyle, d.Style)
	fmt.Fprintf(&b, `<rect class="page" x="%d" y="%d" width="%d" height="%d"/>`+"\n", -padding, -padding, w+2*padding, h+2*padding)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="10" orient="auto-start-reverse"><path class="tip" d="M0 0L10 5L0 10z"/></marker></defs>` + "\n")
	l.svg(&b)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (l *layout) svg(w *bytes.Buffer) {
	for i, e := range l.diagram.Edges {
		fmt.Fprintf(w, `<path class="edge %s" data-from="%s" data-to="%s" d="%s" marker-end="url(#tip)"/>`+"\n", e.Kind, escape(e.From), escape(e.To), l.pathData(l.ways[i]))
	}
	for _, box := range l.order {
		l.box(w, box)
	}
	for _, row := range l.rows {
		for _, b := range row {
			if b.text != "" {
				x, y := b.x+padding/2, b.bottom-4
				if l.horizontal {
					x, y = b.y+padding/2, b.x+lineHeight-4
				}
				fmt.Fprintf(w, `<text class="label" x="%d" y="%d">%s</text>`+"\n", x, y, escape(b.text))
			}
		}
	}
}

const barWidth = 4

// box draws a node and its inside.
func (l *layout) box(out *bytes.Buffer, b *box) {
	x, y := l.drawn(b.x, b.y)
	w, h := l.drawn(b.w, b.h)
	name := ""
	if b.node != nil && b.node.Name != b.labels[0] { // it was shortened
		name = fmt.Sprintf(` data-name="%[1]s"><title>%[1]s</title`, escape(b.node.Name))
	}
	fmt.Fprintf(out, `<g class="%s"%s><rect class="box" x="%d" y="%d" width="%d" height="%d"/>`, b.class(), name, x, y, w, h)
	if b.node != nil {
		fmt.Fprintf(out, `<rect class="bar" x="%d" y="%d" width="%d" height="%d"/>`, x, y, barWidth, h)
	}
	for i, label := range b.labels {
		name := ""
		if i == 0 {
			name = ` class="name"`
		}
		fmt.Fprintf(out, `<text%s x="%d" y="%d" text-anchor="middle">%s</text>`, name, x+w/2, y+padding+lineHeight*i+12, escape(label))
	}
	if b.inner != nil {
		inside, _ := b.inner.drawn(b.inner.w, b.inner.h)
		top := len(b.labels)*lineHeight + 2*padding
		fmt.Fprintf(out, "<g transform=\"translate(%d %d)\">\n", x+(w-inside)/2, y+top)
		b.inner.svg(out)
		out.WriteString("</g>")
	}
	out.WriteString("</g>\n")
}

// class returns the CSS classes of the box: its kind, and the status of its
// node in a run.
func (b *box) class() string {
	if b.node == nil {
		return "end"
	}
	if b.node.Class != "" {
		return b.node.Class
	}
	class := b.node.Kind
	if b.node.Uses == "human.ask" {
		class = "ask"
	}
	if b.inner != nil {
		class += " body"
	}
	if b.node.Status != "" {
		class += " " + b.node.Status
	}
	return class
}

// escape escapes text for XML; characters that XML does not allow become U+FFFD.
func escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return unicode.ReplacementChar
		}
		return r
	}, text))
}

package extract

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

const (
	// maxFormDepth bounds the nesting of form objects.
	maxFormDepth = 8
	// maxAnnotations bounds the annotations of a page.
	maxAnnotations = 2000
	// gapOfSpace, gapOfLine and gapOfParagraph are the distances, in font sizes, from
	// which text is separated by a space, a line break or an empty line.
	gapOfSpace     = 0.15
	gapOfLine      = 0.5
	gapOfParagraph = 1.7
	// offsetOfBold is the maximum distance, in font sizes, between two drawings of a text
	// that make it bold.
	offsetOfBold = 0.1
	// defaultWidth is the width of a glyph in thousandths of the font's size, if the font
	// does not define it.
	defaultWidth = 500
)

// matrix is a transformation [a b c d e f] of PDF.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// toMatrix reads six numbers.
func toMatrix(args []pdf.Value) matrix {
	if len(args) != 6 {
		return identity
	}
	var m matrix
	for i, v := range args {
		m[i] = v.Float64()
	}
	return m
}

// graphics is the part of the graphics state that text depends on.
type graphics struct {
	ctm                matrix
	font               *pdfFont
	size, leading      float64
	charGap, wordGap   float64
	horizontal         float64 // scale
	textLine, textHere matrix
}

// pageText collects the text of a page in the order of its content stream. It
// separates lines and words by their positions, because files contain no line breaks
// and often no spaces.
type pageText struct {
	ctx    context.Context
	glyphs *glyphList
	out    strings.Builder
	line   pdfLine
	length int // of the text
	state  graphics
	saved  []graphics
	fonts  map[string]*pdfFont
	drawn  map[drawnText]bool
	// marked has the ActualText of each enclosing marked content; nil for one that
	// has none.
	marked []*actualText
	// unknown is the number of glyphs whose text is unknown.
	unknown int
	// The end of the last text, its direction and size.
	endX, endY, dirX, dirY, lastSize float64
}

// actualText is a text that replaces the drawn text.
type actualText struct {
	text    string
	written bool
}

// drawnText is a text at a position, in steps of offsetOfBold.
type drawnText struct {
	text string
	x, y int
}

var errTooMuchText = errors.New("too much text")

// read interprets a content stream.
func (t *pageText) read(contents, resources pdf.Value, depth int) {
	if !pdfStreamFits(contents) {
		panic(errContent)
	}
	fonts := t.fonts
	t.fonts = map[string]*pdfFont{}
	pdf.Interpret(contents, func(stack *pdf.Stack, op string) {
		if t.ctx.Err() != nil {
			panic(context.Cause(t.ctx))
		}
		if t.length > maxPDFText {
			panic(errTooMuchText)
		}
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		if op == "Do" && len(args) == 1 && depth < maxFormDepth {
			t.form(resources.Key("XObject").Key(args[0].Name()), resources, depth)
			return
		}
		if !t.setState(op, args, resources) && !t.mark(op, args, resources) {
			t.show(op, args)
		}
	})
	t.fonts = fonts
}

// form reads a form object, which has a content stream.
func (t *pageText) form(object, resources pdf.Value, depth int) {
	if object.Key("Subtype").Name() == "Form" {
		t.content(object, resources, depth)
	}
}

func (t *pageText) content(object, resources pdf.Value, depth int) {
	if own := object.Key("Resources"); !own.IsNull() {
		resources = own
	}
	before, saved := t.state, t.saved
	t.saved = nil
	if m := object.Key("Matrix"); m.Len() == 6 {
		t.state.ctm = toMatrix([]pdf.Value{m.Index(0), m.Index(1), m.Index(2), m.Index(3), m.Index(4), m.Index(5)}).times(t.state.ctm)
	}
	t.read(object, resources, depth+1)
	t.state, t.saved = before, saved
}

// Flags of annotations that are not visible.
const (
	hiddenAnnotation = 1 << 1
	noViewAnnotation = 1 << 5
)

// annotations reads the text of the form fields and free-text annotations of a page.
func (t *pageText) annotations(list pdf.Value) {
	for i := range min(list.Len(), maxAnnotations) {
		a := list.Index(i)
		kind, rect, shown := a.Key("Subtype").Name(), a.Key("Rect"), a.Key("AP").Key("N")
		if kind != "Widget" && kind != "FreeText" || a.Key("F").Int64()&(hiddenAnnotation|noViewAnnotation) != 0 || rect.Len() != 4 {
			continue
		}
		if state := a.Key("AS").Name(); state != "" && shown.Kind() == pdf.Dict {
			shown = shown.Key(state)
		}
		if shown.Kind() != pdf.Stream {
			continue
		}
		box := shown.Key("BBox")
		t.state = graphics{ctm: identity, textLine: identity, textHere: identity, horizontal: 1}
		t.state.ctm[4], t.state.ctm[5] = rect.Index(0).Float64()-box.Index(0).Float64(), rect.Index(1).Float64()-box.Index(1).Float64()
		t.content(shown, pdf.Value{}, 0)
	}
}

// setState executes the operators that change the state. It reports whether op is one
// of them.
func (t *pageText) setState(op string, args []pdf.Value, resources pdf.Value) bool {
	s := &t.state
	number := func(i int) float64 {
		if i < len(args) {
			return args[i].Float64()
		}
		return 0
	}
	switch op {
	case "q":
		if len(t.saved) < 1000 {
			t.saved = append(t.saved, *s)
		}
	case "Q":
		if n := len(t.saved); n > 0 {
			*s, t.saved = t.saved[n-1], t.saved[:n-1]
		}
	case "cm":
		s.ctm = toMatrix(args).times(s.ctm)
	case "BT":
		s.textLine, s.textHere = identity, identity
	case "Tf":
		if len(args) == 2 {
			s.font, s.size = t.font(args[0].Name(), resources), args[1].Float64()
		}
	case "Tc":
		s.charGap = number(0)
	case "Tw":
		s.wordGap = number(0)
	case "Tz":
		s.horizontal = number(0) / 100
	case "TL":
		s.leading = number(0)
	case "Tm":
		s.textLine = toMatrix(args)
		s.textHere = s.textLine
	case "TD":
		s.leading = -number(1)
		t.moveLine(number(0), number(1))
	case "Td":
		t.moveLine(number(0), number(1))
	case "T*":
		t.moveLine(0, -s.leading)
	default:
		return false
	}
	return true
}

func (t *pageText) moveLine(x, y float64) {
	t.state.textLine = matrix{1, 0, 0, 1, x, y}.times(t.state.textLine)
	t.state.textHere = t.state.textLine
}

// show executes the operators that show text.
func (t *pageText) show(op string, args []pdf.Value) {
	if len(args) == 0 {
		return
	}
	last := args[len(args)-1]
	switch op {
	case "\"":
		if len(args) == 3 {
			t.state.wordGap, t.state.charGap = args[0].Float64(), args[1].Float64()
		}
		t.moveLine(0, -t.state.leading)
		t.text(last.RawString())
	case "'":
		t.moveLine(0, -t.state.leading)
		t.text(last.RawString())
	case "Tj":
		t.text(last.RawString())
	case "TJ":
		for i := range last.Len() {
			if piece := last.Index(i); piece.Kind() == pdf.String {
				t.text(piece.RawString())
			} else {
				t.advance(-piece.Float64() / 1000 * t.state.size)
			}
		}
	}
}

// maxMarked limits the nesting of marked content.
const maxMarked = 1000

// mark handles the operators of marked content, and reports whether op is one of them.
func (t *pageText) mark(op string, args []pdf.Value, resources pdf.Value) bool {
	switch op {
	case "BMC", "BDC":
		var actual *actualText
		if len(args) == 2 {
			properties := args[1]
			if properties.Kind() == pdf.Name {
				properties = resources.Key("Properties").Key(properties.Name())
			}
			if v := properties.Key("ActualText"); v.Kind() == pdf.String {
				actual = &actualText{text: v.Text()}
			}
		}
		if len(t.marked) < maxMarked {
			t.marked = append(t.marked, actual)
		}
	case "EMC":
		if n := len(t.marked); n > 0 {
			t.marked = t.marked[:n-1]
		}
	default:
		return false
	}
	return true
}

// replaced returns the outermost ActualText around the current position; nil if there
// is none.
func (t *pageText) replaced() *actualText {
	for _, actual := range t.marked {
		if actual != nil {
			return actual
		}
	}
	return nil
}

func (t *pageText) advance(x float64) {
	t.state.textHere = matrix{1, 0, 0, 1, x * t.state.horizontal, 0}.times(t.state.textHere)
}

// maxPDFString is the part of a string that is read without checking the context.
const maxPDFString = 4096

// text adds a string at the current position.
func (t *pageText) text(raw string) {
	for len(raw) > maxPDFString {
		if t.ctx.Err() != nil {
			panic(context.Cause(t.ctx))
		}
		t.piece(t.state.font.glyphs(raw[:maxPDFString]))
		raw = raw[maxPDFString:]
	}
	t.piece(t.state.font.glyphs(raw))
}

// piece adds glyphs at the current position.
func (t *pageText) piece(glyphs []pdfGlyph) {
	s := &t.state
	at := s.textHere.times(s.ctm)
	size := s.size * math.Hypot(at[2], at[3])
	var decoded strings.Builder
	for _, g := range glyphs {
		decoded.WriteString(g.text)
	}
	text := decoded.String()
	isVisible := strings.TrimSpace(text) != ""
	actual := t.replaced()
	switch {
	case actual != nil && isVisible:
		if !actual.written {
			actual.written = true
			t.begin(at, size, actual.text)
			t.add(actual.text, at, at)
		}
	case actual != nil || isVisible && t.isDrawnAgain(text, at, size):
		isVisible = false
	case isVisible:
		t.begin(at, size, text)
	case text != "" && t.length > 0:
		t.space()
	}
	for _, g := range glyphs {
		from := s.textHere.times(s.ctm)
		width := g.width/1000*s.size + s.charGap
		if g.isSpace {
			width += s.wordGap
		}
		t.advance(width)
		if isVisible && actual == nil {
			t.add(g.text, from, s.textHere.times(s.ctm))
			if g.text == unknownGlyph {
				t.unknown++
			}
		}
	}
	if isVisible {
		end := s.textHere.times(s.ctm)
		t.endX, t.endY = end[4], end[5]
		if n := len(t.line.parts); actual != nil && n > 0 {
			t.line.parts[n-1].end = t.along(end)
		}
	}
}

// begin separates a text from the previous one, and adopts its direction and size.
func (t *pageText) begin(at matrix, size float64, text string) {
	t.separate(at, size, text)
	t.lastSize = size
	t.line.size = max(t.line.size, size)
	t.dirX, t.dirY = 1, 0
	if length := math.Hypot(at[0], at[1]); length > 0 {
		t.dirX, t.dirY = at[0]/length, at[1]/length
	}
}

func (t *pageText) along(at matrix) float64 { return at[4]*t.dirX + at[5]*t.dirY }

// add adds the text of a glyph to the line.
func (t *pageText) add(text string, from, to matrix) {
	if text == "" {
		return
	}
	if len(t.line.parts) >= maxLineParts {
		t.endLine()
	}
	t.line.parts = append(t.line.parts, linePart{text: text, start: t.along(from), end: t.along(to)})
	t.length += len(text)
}

const (
	// maxLineParts limits the buffered glyphs of a line, and maxDrawn the texts whose
	// positions are kept.
	maxLineParts = 10_000
	maxDrawn     = 50_000
)

// isDrawnAgain reports whether the same text was already drawn at almost the same
// place, which makes it bold.
func (t *pageText) isDrawnAgain(text string, at matrix, size float64) bool {
	unit := max(size, 0.001) * offsetOfBold
	x, y := int(math.Round(at[4]/unit)), int(math.Round(at[5]/unit))
	for dx := -1; dx <= 1; dx++ {
		for dy := -1; dy <= 1; dy++ {
			if t.drawn[drawnText{text, x + dx, y + dy}] {
				return true
			}
		}
	}
	if len(t.drawn) >= maxDrawn {
		clear(t.drawn)
	}
	t.drawn[drawnText{text, x, y}] = true
	return false
}

// separate writes the separator between the last text and the next one.
func (t *pageText) separate(at matrix, size float64, next string) {
	if t.length == 0 {
		return
	}
	dx, dy := at[4]-t.endX, at[5]-t.endY
	along, across := dx*t.dirX+dy*t.dirY, math.Abs(dy*t.dirX-dx*t.dirY)
	unit := max(size, t.lastSize, 0.001)
	switch {
	case across > gapOfParagraph*unit:
		t.lineBreak("\n\n")
	case across > gapOfLine*unit:
		t.lineBreak("\n")
	case math.Abs(along) > gapOfSpace*unit && !strings.HasPrefix(next, " "):
		t.space()
	}
}

func (t *pageText) space() {
	if n := len(t.line.parts); n > 0 && !strings.HasSuffix(t.line.parts[n-1].text, " ") {
		t.line.parts = append(t.line.parts, linePart{text: " ", isGap: true})
		t.length++
	}
}

func (t *pageText) lineBreak(breaks string) {
	if len(t.line.parts) > 0 {
		t.endLine()
		t.out.WriteString(breaks)
	}
}

// endLine writes the line.
func (t *pageText) endLine() {
	t.out.WriteString(t.line.text())
	t.line = pdfLine{parts: t.line.parts[:0]}
}

// font returns a font of the resources.
func (t *pageText) font(name string, resources pdf.Value) *pdfFont {
	if f, ok := t.fonts[name]; ok {
		return f
	}
	f := newPDFFont(resources.Key("Font").Key(name), t.glyphs)
	t.fonts[name] = f
	return f
}

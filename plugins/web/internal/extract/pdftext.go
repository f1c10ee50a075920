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
	// gapOfSpace, gapOfLine and gapOfParagraph are the distances, in sizes of the
	// font, from which on text is separated by a space, a line break or an empty
	// line.
	gapOfSpace     = 0.15
	gapOfLine      = 0.5
	gapOfParagraph = 1.7
	// defaultWidth is the width of a glyph in thousandths of the font's size, if
	// the font does not say.
	defaultWidth = 500
)

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "\u00ad", "")

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

// pdfFont is a font with its widths.
type pdfFont struct {
	pdf.Font
	wide     bool // codes have two bytes
	first    int
	widths   []float64
	byCode   map[int]float64 // of wide fonts
	fallback float64
}

// pageText collects the text of a page in the order of its content stream.
// Lines and words are told apart by their positions, since files contain
// neither line breaks nor, often, spaces.
type pageText struct {
	ctx   context.Context
	out   strings.Builder
	state graphics
	saved []graphics
	fonts map[string]*pdfFont
	// Where the last text has ended, in which direction and size.
	endX, endY, dirX, dirY, lastSize float64
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
		if t.out.Len() > maxPDFText {
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
		if !t.setState(op, args, resources) {
			t.show(op, args)
		}
	})
	t.fonts = fonts
}

// form reads a form object, which has a content stream.
func (t *pageText) form(object, resources pdf.Value, depth int) {
	if object.Key("Subtype").Name() != "Form" {
		return
	}
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

// setState carries out the operators that change the state. It reports whether
// op is one of them.
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

// show carries out the operators that show text.
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

// maxPDFString is the part of a string that is decoded without looking at the
// context.
const maxPDFString = 4096

// decode converts a string of a font. The time that the library needs for it
// grows with the font's character map.
func (t *pageText) decode(font *pdfFont, raw string) string {
	encoder := font.Encoder()
	var b strings.Builder
	for len(raw) > maxPDFString {
		if t.ctx.Err() != nil {
			panic(context.Cause(t.ctx))
		}
		b.WriteString(encoder.Decode(raw[:maxPDFString]))
		raw = raw[maxPDFString:]
	}
	b.WriteString(encoder.Decode(raw))
	return b.String()
}

func (t *pageText) advance(x float64) {
	t.state.textHere = matrix{1, 0, 0, 1, x * t.state.horizontal, 0}.times(t.state.textHere)
}

// text adds a string at the current position.
func (t *pageText) text(raw string) {
	s := &t.state
	decoded := raw
	if s.font != nil {
		decoded = t.decode(s.font, raw)
	}
	decoded = ligatures.Replace(decoded)
	at := s.textHere.times(s.ctm)
	size := s.size * math.Hypot(at[2], at[3])
	length := math.Hypot(at[0], at[1])
	if strings.TrimSpace(decoded) != "" {
		t.separate(at, size, decoded)
		t.out.WriteString(decoded)
		t.lastSize = size
		t.dirX, t.dirY = 1, 0
		if length > 0 {
			t.dirX, t.dirY = at[0]/length, at[1]/length
		}
	} else if decoded != "" && t.out.Len() > 0 {
		t.space()
	}
	t.advance(s.font.width(raw, s))
	end := s.textHere.times(s.ctm)
	if strings.TrimSpace(decoded) != "" {
		t.endX, t.endY = end[4], end[5]
	}
}

// separate writes what is between the last text and the next one.
func (t *pageText) separate(at matrix, size float64, next string) {
	if t.out.Len() == 0 {
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
	if !strings.HasSuffix(t.out.String(), " ") && !strings.HasSuffix(t.out.String(), "\n") {
		t.out.WriteByte(' ')
	}
}

func (t *pageText) lineBreak(breaks string) {
	if !strings.HasSuffix(t.out.String(), "\n") {
		t.out.WriteString(breaks)
	}
}

// font returns a font of the resources.
func (t *pageText) font(name string, resources pdf.Value) *pdfFont {
	if f, ok := t.fonts[name]; ok {
		return f
	}
	v := resources.Key("Font").Key(name)
	f := &pdfFont{Font: pdf.Font{V: v}, fallback: defaultWidth}
	if !isSafeMap(v.Key("ToUnicode")) {
		panic(errCharacterMap)
	}
	if v.Key("Subtype").Name() == "Type0" {
		f.readWideWidths(v.Key("DescendantFonts").Index(0))
	} else {
		f.first, f.widths = f.FirstChar(), f.Widths()
		if v.Key("Subtype").Name() == "Type3" {
			f.widths = nil // in units of the font
		}
	}
	t.fonts[name] = f
	return f
}

// readWideWidths reads the widths of a font whose codes have two bytes: c [w...]
// or first last w.
func (f *pdfFont) readWideWidths(descendant pdf.Value) {
	f.wide, f.byCode, f.fallback = true, map[int]float64{}, 1000
	if w := descendant.Key("DW"); !w.IsNull() {
		f.fallback = w.Float64()
	}
	list := descendant.Key("W")
	for i := 0; i+1 < list.Len() && len(f.byCode) < 1<<16; {
		first, second := int(list.Index(i).Int64()), list.Index(i+1)
		if second.Kind() == pdf.Array {
			for j := range second.Len() {
				f.byCode[first+j] = second.Index(j).Float64()
			}
			i += 2
			continue
		}
		for code := first; code <= min(int(second.Int64()), first+1<<16) && i+2 < list.Len(); code++ {
			f.byCode[code] = list.Index(i + 2).Float64()
		}
		i += 3
	}
}

// width is the width of a string in units of text space.
func (f *pdfFont) width(raw string, s *graphics) float64 {
	total := 0.0
	step := 1
	if f != nil && f.wide {
		step = 2
	}
	for i := 0; i+step <= len(raw); i += step {
		w := float64(defaultWidth)
		switch {
		case f == nil:
		case f.wide:
			w = f.fallback
			if own, ok := f.byCode[int(raw[i])<<8|int(raw[i+1])]; ok {
				w = own
			}
		case int(raw[i]) >= f.first && int(raw[i])-f.first < len(f.widths):
			w = f.widths[int(raw[i])-f.first]
		}
		total += w/1000*s.size + s.charGap
		if step == 1 && raw[i] == ' ' {
			total += s.wordGap
		}
	}
	return total
}

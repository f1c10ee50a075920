package office

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// markup reads the paragraphs, lists and tables of WordprocessingML and DrawingML. No
// local name means something else in the other language.
type markup struct {
	out    writer
	links  map[string]relation
	styles styles
	slide  bool // a link is a property of its run
	plain  bool // placeholders are not lists
	// holder is the kind of the current placeholder of a slide: title, list, or none if its
	// text is left out; "" outside of one.
	holder string

	paragraphs    []*paragraph // open, the innermost last: a text box is inside a paragraph
	inRun, inText bool
	footnotes     []string // ids in the order of their references
	numbers       map[string]int
	spans         []int // columns of the open cells
}

// paragraph is an open paragraph.
type paragraph struct {
	text strings.Builder // HTML
	form
	bold, slanted bool   // the current run
	link          string // address of the open link
}

// form is what makes a paragraph a heading or an item of a list.
type form struct {
	heading   int // from 1; 0 for none
	numbering string
	list      string // ul or ol; "" for none
	level     int    // of the list, from 0
}

const (
	// maxMarkupDepth bounds the nesting of elements.
	maxMarkupDepth = 500
	// maxSpan is the maximum number of columns in a table of Word.
	maxSpan = 63
	// maxHeading is the last level of headings in HTML.
	maxHeading = 6
)

// read reads an XML part.
func (m *markup) read(ctx context.Context, data []byte) error {
	d := decoder(data)
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			m.out.endLists()
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if invisible(t.Name.Local) {
				if err := d.Skip(); err != nil {
					return err
				}
				continue
			}
			if depth++; depth > maxMarkupDepth {
				return fmt.Errorf("elements are nested deeper than %d", maxMarkupDepth)
			}
			m.start(t)
		case xml.EndElement:
			depth--
			m.end(t.Name.Local)
		case xml.CharData:
			if p := m.open(); p != nil && m.inText {
				p.write(string(t))
			}
		}
	}
}

// invisible reports whether an element is not part of the text: deleted or moved text,
// fallbacks for older programs, codes of fields, section properties and previous formatting.
func invisible(name string) bool {
	switch name {
	case "del", "moveFrom", "Fallback", "instrText", "sectPr", "rPrChange", "pPrChange", "tblPrChange":
		return true
	}
	return false
}

func (m *markup) open() *paragraph {
	if len(m.paragraphs) == 0 {
		return nil
	}
	return m.paragraphs[len(m.paragraphs)-1]
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// isOn reports whether a toggle property is on. Without a value, it is.
func isOn(value string) bool { return value != "0" && value != "false" && value != "off" }

func (m *markup) start(t xml.StartElement) {
	switch name := t.Name.Local; name {
	case "p":
		p := &paragraph{}
		switch m.holder {
		case "title":
			p.heading = 1
		case "list":
			p.list = "ul"
		}
		m.paragraphs = append(m.paragraphs, p)
	case "tbl":
		m.out.start("table")
	case "tr":
		m.out.start("tr")
	case "tc":
		m.out.start("td")
		m.spans = append(m.spans, 1)
	case "gridSpan":
		if n, err := strconv.Atoi(attribute(t, "val")); err == nil && len(m.spans) > 0 {
			m.spans[len(m.spans)-1] = min(max(n, 1), maxSpan)
		}
	case "sp", "graphicFrame":
		m.holder = ""
	case "ph":
		switch attribute(t, "type") {
		case "title", "ctrTitle":
			m.holder = "title"
		case "", "body", "obj":
			if !m.plain {
				m.holder = "list"
			}
		case "sldNum", "dt", "ftr", "hdr":
			m.holder = "none"
		}
	case "r", "fld":
		m.inRun = true
		if p := m.open(); p != nil {
			p.bold, p.slanted = false, false
		}
	case "t":
		m.inText = true
	default:
		if p := m.open(); p != nil {
			m.inside(p, t)
		}
	}
}

// inside handles the start of an element inside a paragraph.
func (m *markup) inside(p *paragraph, t xml.StartElement) {
	value := attribute(t, "val")
	switch t.Name.Local {
	case "pPr": // a slide has the level as an attribute
		p.level, _ = strconv.Atoi(attribute(t, "lvl"))
	case "pStyle":
		p.form = m.styles.forms[value]
	case "outlineLvl":
		p.heading = headingOf(value)
	case "numId":
		p.numbering = value
	case "ilvl":
		p.level, _ = strconv.Atoi(value)
	case "buNone":
		p.list = ""
	case "buAutoNum":
		p.list = "ol"
	case "buChar":
		p.list = "ul"
	case "rPr":
		p.bold, p.slanted = attribute(t, "b") == "1", attribute(t, "i") == "1"
	case "b":
		p.bold = isOn(value)
	case "i":
		p.slanted = isOn(value)
	case "noBreakHyphen":
		p.text.WriteString("-")
	case "br", "cr":
		p.text.WriteString("<br>")
	case "tab":
		if m.inRun { // elsewhere it is a tab stop
			p.text.WriteString(" ")
		}
	case "hyperlink", "hlinkClick":
		if r := m.links[attribute(t, "id")]; r.TargetMode == "External" {
			p.link = r.Target
		}
	case "footnoteReference", "endnoteReference":
		id := strings.TrimSuffix(t.Name.Local, "Reference") + attribute(t, "id")
		if m.numbers[id] == 0 {
			if m.numbers == nil {
				m.numbers = map[string]int{}
			}
			m.footnotes = append(m.footnotes, id)
			m.numbers[id] = len(m.footnotes)
		}
		fmt.Fprintf(&p.text, " [%d]", m.numbers[id])
	}
}

// write adds text of the current run.
func (p *paragraph) write(text string) {
	text = escape(text)
	if strings.TrimSpace(text) != "" {
		if p.bold {
			text = "<b>" + text + "</b>"
		}
		if p.slanted {
			text = "<i>" + text + "</i>"
		}
		if p.link != "" {
			text = `<a href="` + escape(p.link) + `">` + text + "</a>"
		}
	}
	p.text.WriteString(text)
}

func (m *markup) end(name string) {
	p := m.open()
	switch name {
	case "p":
		if p != nil {
			m.paragraphs = m.paragraphs[:len(m.paragraphs)-1]
			m.emit(p)
		}
	case "tbl":
		m.out.end("table")
		m.out.WriteString("\n")
	case "tr":
		m.out.end("tr")
	case "tc":
		m.out.end("td")
		if last := len(m.spans) - 1; last >= 0 {
			m.out.WriteString(strings.Repeat("<td></td>", m.spans[last]-1))
			m.spans = m.spans[:last]
		}
	case "r", "fld":
		m.inRun = false
		if p != nil && m.slide {
			p.link = ""
		}
	case "hyperlink":
		if p != nil {
			p.link = ""
		}
	case "t":
		m.inText = false
	}
}

// emit writes a paragraph that has ended.
func (m *markup) emit(p *paragraph) {
	text := p.text.String()
	if p.numbering != "" {
		p.list = cmp.Or(m.styles.lists[p.numbering+"/"+strconv.Itoa(p.level)], m.styles.lists[p.numbering+"/0"])
	}
	switch {
	case strings.TrimSpace(text) == "" || m.holder == "none":
	case p.heading > 0:
		m.out.block("h"+strconv.Itoa(min(p.heading, maxHeading)), text)
	case p.list != "":
		m.out.item(p.list, p.level, text)
	default:
		m.out.block("p", text)
	}
}

// headingOf returns the level of a heading for an outline level from 0 to 8; 0 for others.
func headingOf(outline string) int {
	if n, err := strconv.Atoi(outline); err == nil && n >= 0 && n < 9 {
		return n + 1
	}
	return 0
}

// styles are the styles and numberings of a document.
type styles struct {
	forms map[string]form   // by the id of the style
	lists map[string]string // ul or ol, by NUMBERING/LEVEL
}

type valued struct {
	Val string `xml:"val,attr"`
}

// readStyles reads the styles and numberings of a document, which need not exist.
func readStyles(ctx context.Context, a *archive, links map[string]relation) (s styles, err error) {
	var list struct {
		Style []struct {
			ID      string `xml:"styleId,attr"`
			Name    valued `xml:"name"`
			BasedOn valued `xml:"basedOn"`
			Outline valued `xml:"pPr>outlineLvl"`
			Number  valued `xml:"pPr>numPr>numId"`
			Level   valued `xml:"pPr>numPr>ilvl"`
		} `xml:"style"`
	}
	if err := a.decode(related(links, "styles", "word/styles.xml"), &list, true); err != nil {
		return s, err
	}
	s.forms = map[string]form{}
	for changed, pass := true, 0; changed && pass < 10; pass++ { // a style can be based on one that is defined later
		changed = false
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		for _, style := range list.Style {
			f := s.forms[style.BasedOn.Val]
			if n := headingOf(style.Outline.Val); n > 0 {
				f.heading = n
			}
			if number, ok := strings.CutPrefix(strings.ToLower(style.Name.Val), "heading "); ok {
				f.heading, _ = strconv.Atoi(number)
			} else if strings.EqualFold(style.Name.Val, "title") {
				f.heading = 1
			}
			if style.Number.Val != "" {
				f.numbering = style.Number.Val
				f.level, _ = strconv.Atoi(style.Level.Val)
			}
			// A style such as List Bullet 2 has the first level of a separate numbering.
			if n := style.Name.Val; strings.HasPrefix(strings.ToLower(n), "list ") && f.level == 0 {
				f.level = max(0, strings.IndexByte("0123456789", n[len(n)-1])-1)
			}
			if s.forms[style.ID] != f {
				s.forms[style.ID], changed = f, true
			}
		}
	}
	s.lists, err = readNumberings(a, links)
	return s, err
}

func readNumberings(a *archive, links map[string]relation) (map[string]string, error) {
	var list struct {
		Abstract []struct {
			ID     string `xml:"abstractNumId,attr"`
			Levels []struct {
				Level  string `xml:"ilvl,attr"`
				Format valued `xml:"numFmt"`
			} `xml:"lvl"`
		} `xml:"abstractNum"`
		Number []struct {
			ID       string `xml:"numId,attr"`
			Abstract valued `xml:"abstractNumId"`
		} `xml:"num"`
	}
	if err := a.decode(related(links, "numbering", "word/numbering.xml"), &list, true); err != nil {
		return nil, err
	}
	kinds, lists := map[string]string{}, map[string]string{}
	for _, abstract := range list.Abstract {
		for _, level := range abstract.Levels {
			kind := "ol"
			switch level.Format.Val {
			case "bullet":
				kind = "ul"
			case "none":
				kind = ""
			}
			kinds[abstract.ID+"/"+level.Level] = kind
		}
	}
	for _, number := range list.Number {
		for level := range 9 {
			suffix := "/" + strconv.Itoa(level)
			lists[number.ID+suffix] = kinds[number.Abstract.Val+suffix]
		}
	}
	return lists, nil
}

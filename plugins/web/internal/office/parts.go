package office

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// readDOCX reads the text of a document, with its footnotes and endnotes at the end.
func (f *File) readDOCX(ctx context.Context, a *archive, name string) error {
	f.readProperties(a)
	links, err := a.relations(name)
	if err != nil {
		return err
	}
	m := &markup{links: links}
	if m.styles, err = readStyles(ctx, a, links); err != nil {
		return err
	}
	data, err := a.read(name)
	if err != nil {
		return err
	}
	if err := m.read(ctx, data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := m.addFootnotes(ctx, a); err != nil {
		return err
	}
	f.Parts = []Part{{Title: f.Metadata.Title, ContentType: htmlType, Body: htmlDocument(m.out.String())}}
	return nil
}

// addFootnotes writes the footnotes and endnotes of the text.
func (m *markup) addFootnotes(ctx context.Context, a *archive) error {
	texts := map[string]string{}
	for _, kind := range []string{"footnote", "endnote"} {
		var list struct {
			Note []struct {
				ID    string `xml:"id,attr"`
				Inner []byte `xml:",innerxml"`
			} `xml:",any"`
		}
		if err := a.decode(related(m.links, kind+"s", "word/"+kind+"s.xml"), &list, true); err != nil {
			return err
		}
		for _, n := range list.Note {
			note := &markup{styles: m.styles}
			// Namespace prefixes are declared outside of the element, and are not needed.
			if err := note.read(ctx, append(append([]byte("<note>"), n.Inner...), "</note>"...)); err != nil {
				return fmt.Errorf("the %s %s: %w", kind, n.ID, err)
			}
			texts[kind+n.ID] = note.out.String()
		}
	}
	for i, id := range m.footnotes {
		text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(texts[id]), "<p>"), "</p>")
		m.out.block("p", fmt.Sprintf("[%d] %s", i+1, text))
	}
	return nil
}

// readPPTX reads the slides of a presentation in their order, with the speaker's notes.
func (f *File) readPPTX(ctx context.Context, a *archive, name string) error {
	f.readProperties(a)
	var p struct {
		Slides []struct {
			Attr []xml.Attr `xml:",any,attr"`
		} `xml:"sldIdLst>sldId"`
	}
	if err := a.decode(name, &p, false); err != nil {
		return err
	}
	links, err := a.relations(name)
	if err != nil {
		return err
	}
	for i, slide := range p.Slides {
		if f.full() {
			break
		}
		target := ""
		for _, attr := range slide.Attr {
			if attr.Name.Space != "" && attr.Name.Local == "id" {
				target = links[attr.Value].Target
			}
		}
		text, err := readSlide(ctx, a, target)
		if err != nil {
			return fmt.Errorf("slide %d: %w", i+1, err)
		}
		f.Parts = append(f.Parts, Part{Title: "Slide " + strconv.Itoa(i+1), ContentType: htmlType, Body: htmlDocument(text)})
	}
	return nil
}

func readSlide(ctx context.Context, a *archive, name string) (string, error) {
	links, err := a.relations(name)
	if err != nil {
		return "", err
	}
	m := &markup{links: links, slide: true}
	data, err := a.read(name)
	if err != nil {
		return "", err
	}
	if err := m.read(ctx, data); err != nil {
		return "", err
	}
	for _, r := range links {
		if path.Base(r.Type) != "notesSlide" {
			continue
		}
		notes := &markup{slide: true, plain: true}
		if data, err = a.read(r.Target); err == nil {
			err = notes.read(ctx, data)
		}
		if err != nil {
			return "", err
		}
		m.out.block("blockquote", notes.out.String())
	}
	return m.out.String(), nil
}

const (
	// maxCells bounds the cells and rows of a workbook, including empty cells before others.
	maxCells = 300_000
	// maxTexts bounds the file with the texts of all cells.
	maxTexts = 64 << 20
	// maxInMemory is the size above which the library unpacks sheets and texts to
	// temporary files, because they would take up to 70 times as much memory.
	maxInMemory = 4 << 20
)

// checkXLSX checks the sizes of the files that the library decodes as a whole. The archive
// ensures that they are not larger than they say.
func (a *archive) checkXLSX(main string) error {
	for name, f := range a.files {
		limit := uint64(maxXML)
		switch lower := strings.ToLower(strings.ReplaceAll(name, `\`, "/")); {
		case lower == "xl/sharedstrings.xml":
			limit = maxTexts
		case name == main, lower == "[content_types].xml", lower == "xl/styles.xml", strings.HasPrefix(lower, "docprops/"), strings.HasPrefix(lower, "xl/theme/"), path.Ext(lower) == ".rels":
		default:
			continue
		}
		if f.UncompressedSize64 > limit {
			return fmt.Errorf("%s: %w", name, errTooLarge)
		}
	}
	return nil
}

// readXLSX reads the sheets of a workbook as tables, with values as they are displayed.
func (f *File) readXLSX(ctx context.Context, a *archive, main string, body []byte, limit int64) error {
	if err := a.checkXLSX(main); err != nil {
		return err
	}
	book, err := excelize.OpenReader(bytes.NewReader(body), excelize.Options{UnzipSizeLimit: limit, UnzipXMLSizeLimit: min(limit, maxInMemory)})
	if err != nil {
		return err
	}
	defer func() { _ = book.Close() }() // removes its temporary files
	if p, err := book.GetDocProps(); err == nil {
		f.Metadata = Metadata{Title: p.Title, Author: p.Creator, Description: p.Subject, Published: p.Created, Modified: p.Modified, Language: p.Language}
	}
	left := maxCells
	for _, sheet := range book.GetSheetList() {
		if f.full() {
			break
		}
		table, err := f.readSheet(ctx, book, sheet, &left)
		if err != nil {
			return fmt.Errorf("sheet %s: %w", sheet, err)
		}
		f.Parts = append(f.Parts, Part{Title: sheet, ContentType: htmlType, Body: htmlDocument(table)})
	}
	return nil
}

// readSheet returns the cells of a sheet as a table without empty rows.
func (f *File) readSheet(ctx context.Context, book *excelize.File, sheet string, left *int) (string, error) {
	rows, err := book.Rows(sheet)
	if err != nil {
		if strings.Contains(err.Error(), "not a worksheet") { // a chart
			return "", nil
		}
		return "", err
	}
	defer func() { _ = rows.Close() }() // only read
	var w writer
	w.start("table")
	for rows.Next() {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		cells, err := rows.Columns()
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(strings.Join(cells, "")) == "" {
			continue
		}
		if *left -= len(cells) + 1; *left < 0 {
			f.Notes = append(f.Notes, fmt.Sprintf("the sheet %s was cut off: more than %d cells and rows", sheet, maxCells))
			break
		}
		w.start("tr")
		for _, cell := range cells {
			w.WriteString("<td>" + strings.ReplaceAll(escape(cell), "\n", "<br>") + "</td>")
		}
		w.end("tr")
	}
	w.end("table")
	return w.String(), rows.Error()
}

package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledongthuc/pdf"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// maxPDFPages and maxPDFText bound how much of a PDF file is read.
	maxPDFPages = 2000
	// maxPDFHeader is the number of bytes in which the header must begin, as in other readers.
	maxPDFHeader = 1024
	maxPDFText   = 16 << 20
	// maxPDFNodes and maxPDFDepth bound the tree of pages.
	maxPDFNodes = 20_000
	maxPDFDepth = 100
)

// parsePDF reads the text and the properties of a PDF file. The library panics on
// invalid files.
func (d *Document) parsePDF(ctx context.Context, body []byte) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = d.pdfError(fmt.Errorf("%v", fault))
		}
	}()
	reader, err := openPDF(ctx, body)
	if err != nil {
		return d.pdfError(err)
	}
	d.readPDFProperties(reader.Trailer())
	length, read, unknownGlyphs := 0, 0, 0
	glyphs := newGlyphList()
	total := reader.Trailer().Key("Root").Key("Pages").Key("Count").Int64()
	tree := pageTree{left: maxPDFNodes, visit: func(page, resources pdf.Value) bool {
		if ctx.Err() != nil {
			return false
		}
		if read >= maxPDFPages || length > maxPDFText {
			d.Notes = append(d.Notes, fmt.Sprintf("only the first %d of %d pages were read", read, total))
			return false
		}
		read++
		text, unknown, err := pdfPage(ctx, page, resources, glyphs)
		unknownGlyphs += unknown
		if err != nil {
			d.Notes = append(d.Notes, fmt.Sprintf("page %d could not be read completely: %v", read, err))
		}
		length += len(text)
		d.pages = append(d.pages, text)
		return true
	}}
	tree.walk(reader.Trailer().Key("Root").Key("Pages"), pdf.Value{}, 0)
	if tree.cut {
		d.Notes = append(d.Notes, "the tree of pages is too large or has a cycle; it was not read completely")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if unknownGlyphs > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("the file does not define the text of %d glyphs; they appear as %s", unknownGlyphs, unknownGlyph))
	}
	text := strings.Join(slices.DeleteFunc(slices.Clone(d.pages), func(text string) bool { return text == "" }), "\n\n")
	if text == "" {
		d.Notes = append(d.Notes, "the PDF file has no text; its pages may be pictures")
	}
	d.plain = Content{text: text, markdown: text}
	return nil
}

// Pages returns the text of each page of a PDF file; nil for other documents.
func (d *Document) Pages() []string { return d.pages }

// openPDF opens a PDF file that is safe to read.
func openPDF(ctx context.Context, body []byte) (*pdf.Reader, error) {
	if at := bytes.Index(body[:min(len(body), maxPDFHeader)], []byte("%PDF-")); at > 0 { // offsets count from there
		body = body[at:]
	}
	if rest, ok := bytes.CutPrefix(body, []byte("%PDF-2.0")); ok { // the library refuses the number only
		body = append([]byte("%PDF-1.7"), rest...)
	}
	if body = decryptPDF(body); body == nil {
		return nil, errors.New("it is encrypted with a password")
	}
	if problem := pdfHazard(body); problem != "" {
		return nil, errors.New(problem)
	}
	file := &pdfFile{Reader: bytes.NewReader(body), ctx: ctx, left: int64(len(body))*readsPerByte + freeReads}
	reader, err := pdf.NewReader(file, int64(len(body)))
	if err == nil && isCircular(reader) {
		err = errors.New("an object stream contains itself")
	}
	return reader, err
}

// readPDFProperties sets the metadata of a PDF file.
func (d *Document) readPDFProperties(trailer pdf.Value) {
	info := trailer.Key("Info")
	d.Metadata.Title = clean(info.Key("Title").Text())
	d.Metadata.Author = clean(info.Key("Author").Text())
	d.Metadata.Description = clean(info.Key("Subject").Text())
	d.Metadata.Published = firstDate(pdfDate(info.Key("CreationDate").Text()))
	d.Metadata.Modified = firstDate(pdfDate(info.Key("ModDate").Text()))
	d.Metadata.Language = language(trailer.Key("Root").Key("Lang").Text())
}

func (d *Document) pdfError(err error) *tea.Error {
	e := tea.Errorf(tea.ValidationError, "GET %s: the PDF file cannot be read: %v", d.URL, err)
	e.Source = d.URL.Host
	return e
}

// pageTree visits the pages of a file.
type pageTree struct {
	left  int  // nodes that can still be visited; the tree may have cycles
	cut   bool // not all of the tree was visited
	visit func(page, resources pdf.Value) bool
}

// walk visits the pages below a node until visit returns false. resources are the
// inherited ones.
func (t *pageTree) walk(node, resources pdf.Value, depth int) bool {
	if t.left--; t.left < 0 || depth > maxPDFDepth {
		t.cut = true
		return false
	}
	if own := node.Key("Resources"); !own.IsNull() {
		resources = own
	}
	kids := node.Key("Kids")
	if kids.Kind() != pdf.Array {
		return node.IsNull() || t.visit(node, resources)
	}
	for i := range kids.Len() {
		if !t.walk(kids.Index(i), resources, depth+1) {
			return false
		}
	}
	return true
}

// pdfPage returns the text of a page, and the number of its glyphs whose text is
// unknown.
func pdfPage(ctx context.Context, page, resources pdf.Value, glyphs *glyphList) (text string, unknown int, err error) {
	t := &pageText{ctx: ctx, glyphs: glyphs, drawn: map[drawnText]bool{}, state: graphics{ctm: identity, textLine: identity, textHere: identity, horizontal: 1}}
	defer func() {
		switch fault := recover(); {
		case fault == nil:
		case fault == errTooMuchText || ctx.Err() != nil:
			err = nil // the caller checks both
		default:
			err = fmt.Errorf("%v", fault)
		}
		t.endLine()
		unknown = t.unknown
		text = strings.TrimSpace(strings.ToValidUTF8(t.out.String(), "\ufffd"))
	}()
	if contents := page.Key("Contents"); !contents.IsNull() {
		t.read(contents, resources, 0)
	}
	t.annotations(page.Key("Annots"))
	return "", 0, nil
}

// pdfDate converts D:YYYYMMDDHHmmSS... to YYYYMMDD.
func pdfDate(text string) string {
	text = strings.TrimPrefix(text, "D:")
	return text[:min(len(text), 8)]
}

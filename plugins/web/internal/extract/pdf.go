package extract

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// maxPDFPages and maxPDFText bound what is read of a PDF file.
	maxPDFPages = 2000
	maxPDFText  = 16 << 20
)

// parsePDF reads the text and the properties of a PDF file. The library panics
// on files that are not valid.
func (d *Document) parsePDF(ctx context.Context, body []byte) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = d.pdfError(fmt.Errorf("%v", fault))
		}
	}()
	reader, err := pdf.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return d.pdfError(err)
	}
	info := reader.Trailer().Key("Info")
	d.Metadata.Title = clean(info.Key("Title").Text())
	d.Metadata.Author = clean(info.Key("Author").Text())
	d.Metadata.Description = clean(info.Key("Subject").Text())
	d.Metadata.Published = firstDate(pdfDate(info.Key("CreationDate").Text()))
	d.Metadata.Modified = firstDate(pdfDate(info.Key("ModDate").Text()))
	d.Metadata.Language = language(reader.Trailer().Key("Root").Key("Lang").Text())
	var pages []string
	length := 0
	for i := 1; i <= reader.NumPage(); i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if i > maxPDFPages || length > maxPDFText {
			d.Notes = append(d.Notes, fmt.Sprintf("only the first %d of %d pages were read", i-1, reader.NumPage()))
			break
		}
		text, err := pdfPage(ctx, reader.Page(i))
		if err != nil {
			d.Notes = append(d.Notes, fmt.Sprintf("page %d could not be read completely: %v", i, err))
		}
		length += len(text)
		if text != "" {
			pages = append(pages, text)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text := strings.Join(pages, "\n\n")
	if text == "" {
		d.Notes = append(d.Notes, "the PDF file has no text; its pages can be pictures")
	}
	d.plain = Content{text: text, markdown: text}
	return nil
}

func (d *Document) pdfError(err error) *tea.Error {
	e := tea.Errorf(tea.ValidationError, "GET %s: the PDF file cannot be read: %v", d.URL, err)
	e.Source = d.URL.Host
	return e
}

// pdfPage returns the text of a page.
func pdfPage(ctx context.Context, p pdf.Page) (text string, err error) {
	t := &pageText{ctx: ctx, state: graphics{ctm: identity, textLine: identity, textHere: identity, horizontal: 1}}
	defer func() {
		switch fault := recover(); {
		case fault == nil:
		case fault == errTooMuchText || ctx.Err() != nil:
			err = nil // the caller checks both
		default:
			err = fmt.Errorf("%v", fault)
		}
		text = strings.TrimSpace(strings.ToValidUTF8(t.out.String(), "\ufffd"))
	}()
	if !p.V.IsNull() && !p.V.Key("Contents").IsNull() {
		t.read(p.V.Key("Contents"), p.Resources(), 0)
	}
	return "", nil
}

// pdfDate converts D:YYYYMMDDHHmmSS... to YYYYMMDD.
func pdfDate(text string) string {
	text = strings.TrimPrefix(text, "D:")
	return text[:min(len(text), 8)]
}

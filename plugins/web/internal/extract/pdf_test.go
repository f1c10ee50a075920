package extract_test

import (
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/web/internal/extract"
	tea "github.com/the-edge-agent/tea/sdk"
)

func readFile(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Files of three programs, which place text in different ways: by glyph, by
// word with computed gaps, and by line.
func TestPDF(t *testing.T) {
	t.Parallel()
	sentence := "The gateway records the pressure of the water."
	for name, want := range map[string]string{
		"chromium.pdf": "Über die Gezeiten\nThe gateway records the pressure of the water, before the connection to the mainland is restored. Flußmündung,\nStraße, 12 €.\n\n" +
			"A second paragraph with bold words and italic ones. It continues for a while so that the line has to be broken\nsomewhere on the page, twice if possible, which needs a long sentence.\n\none\ntwo\n\na b\nc d",
		"fpdf2.pdf": "The gateway records the pressure of the water, before the connection is restored. The gateway\nrecords the pressure of the water, before the connection is restored. The gateway records the\n" +
			"pressure of the water, before the connection is restored. The gateway records the pressure of the\nwater, before the connection is restored. \n\nSecond é paragraph.",
		"reportlab.pdf": "Title here\n" + strings.Repeat(sentence+" "+sentence+"\n", 3) + "\na b\n\nc d\n\nStraße, 12 €, é",
	} {
		doc := parse(t, "application/pdf", readFile(t, "testdata/"+name))
		if diff := cmp.Diff(want, doc.Content(true).Text()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	meta := parse(t, "application/octet-stream", readFile(t, "testdata/chromium.pdf")).Metadata
	if meta.Title != "Gezeiten" || meta.Language != "de" || meta.Published == "" || meta.ContentType != "application/pdf" {
		t.Errorf("metadata %+v", meta)
	}
}

// Files that are cut off or changed are an error or a part of their text, never
// a panic.
func TestDamagedPDF(t *testing.T) {
	t.Parallel()
	whole := readFile(t, "testdata/reportlab.pdf")
	u := &url.URL{Scheme: "https", Host: "site.example", Path: "/a.pdf"}
	for cut := 0; cut < len(whole); cut += 17 {
		for _, body := range []string{whole[:cut], whole[:cut] + "xx" + whole[min(cut+2, len(whole)):], whole[:cut] + whole[min(cut+30, len(whole)):]} {
			_, err := extract.Parse(context.Background(), extract.Source{URL: u, ContentType: "application/pdf", Body: []byte(body)})
			if e := tea.AsError(err); e != nil && (e.Type != tea.ValidationError || !strings.HasPrefix(e.Message, "GET https://site.example/a.pdf: the PDF file cannot be read: ")) {
				t.Fatalf("cut at %d: %v", cut, err)
			}
		}
	}
}

// makePDF returns a file of objects, whose numbers begin at 1, with a table and
// a trailer. Each %d in the trailer is the offset of the table.
func makePDF(trailer string, objects ...string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.4\n")
	var table strings.Builder
	for i, object := range objects {
		fmt.Fprintf(&table, "%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	at := strconv.Itoa(b.Len())
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Root 1 0 R /Size %d %s >>\nstartxref\n%s\n%%%%EOF\n",
		len(objects)+1, table.String(), len(objects)+1, strings.ReplaceAll(trailer, "%d", at), at)
	return b.String()
}

func stream(dict, data string) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(data), data)
}

// deflated is a stream that is compressed.
func deflated(data string) string {
	var b strings.Builder
	w := zlib.NewWriter(&b)
	_, _ = io.WriteString(w, data) // to memory
	_ = w.Close()
	return stream("/Filter /FlateDecode", b.String())
}

// A file whose parts refer to each other in a circle, or that declares more than
// it has, is read to an end, and what can be read of it is returned.
func TestHostilePDF(t *testing.T) {
	t.Parallel()
	const catalog, font = "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
	const pages, text = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "BT /F 12 Tf 10 10 Td (readable) Tj ET"
	onePage := func(content, font string) string {
		return makePDF("", catalog, pages, "<< /Type /Page /Parent 3 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>", content, font)
	}
	withMap := func(m string) string {
		return makePDF("", catalog, pages, "<< /Type /Page /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>", stream("", text), "<< /Type /Font /Subtype /Type1 /ToUnicode 6 0 R >>", deflated(m))
	}
	const tooMany = "the PDF file cannot be read: it declares too many objects"
	for name, c := range map[string]struct{ body, text, problem string }{
		"valid":               {onePage(stream("", text), font), "readable", ""},
		"parent is itself":    {makePDF("", catalog, pages, "<< /Type /Page /Parent 3 0 R /Contents 4 0 R >>", stream("", text)), "readable", ""},
		"kids in a circle":    {makePDF("", catalog, "<< /Type /Pages /Kids [3 0 R 2 0 R 2 0 R] /Count 1000000 >>", "<< /Type /Page /Contents 4 0 R >>", stream("", text)), "readable", "the tree of pages is too large or has a cycle"},
		"tables in a circle":  {makePDF("/Prev %d", catalog, pages), "", "the PDF file cannot be read: its parts refer to each other without end"},
		"huge table":          {strings.Replace(makePDF("", catalog, pages), "xref\n0 3", "xref\n9000000000 3", 1), "", tooMany},
		"huge size":           {strings.Replace(makePDF("", catalog, pages), "/Size 3", "/S#69ze %\n 90000000000", 1), "", tooMany},
		"table in startxref":  {makePDF("", catalog, pages) + "startxref\n9000000000 1\n0 0 n\n", "", tooMany},
		"table in a comment":  {strings.Replace(makePDF("", catalog, pages), "xref\n0 3", "xref % xref %\n9000000000 3", 1), "", tooMany},
		"large":               {onePage(stream("", text+strings.Repeat(" ", 200<<10)), font), "readable", ""},
		"content bomb":        {onePage(deflated(strings.Repeat("1 ", 10<<20)), font), "", "page 1 could not be read completely: its content is too large"},
		"operand bomb":        {onePage(deflated(strings.Repeat("1 ", 1<<20)+text), font), "", "page 1 could not be read completely: its content is too large"},
		"strings as operands": {onePage(deflated(strings.Repeat("(T)/T <00>", 1<<18)+text), font), "", "page 1 could not be read completely: its content is too large"},
		"many glyphs":         {onePage(deflated(strings.Repeat("BT /F 12 Tf (a)Tj ET ", 1<<19)), font), "a", ""},
		"map bomb":            {withMap(strings.Repeat(" ", 2<<20)), "", "page 1 could not be read completely: the character map of a font is not valid"},
		"map with a count":    {withMap("begincmap 1000000000 %\n beginbfchar endbfchar"), "readable", ""},
		"long string":         {onePage(deflated("BT /F 12 Tf ("+strings.Repeat("word ", 1<<16)+") Tj ET"), font), "word word", ""},
		"nested arrays":       {onePage(deflated(strings.Repeat("[", 1<<17)), font), "", ""},
	} {
		doc, err := extract.Parse(t.Context(), extract.Source{URL: &url.URL{Scheme: "http", Host: "a.example"}, ContentType: "application/pdf", Body: []byte(c.body)})
		if err != nil {
			if c.problem == "" || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: error %.300v, want %q", name, err, c.problem)
			}
			continue
		}
		if got := doc.Content(true).Text(); !strings.HasPrefix(got, c.text) {
			t.Errorf("%s: text %.100q, want %q", name, got, c.text)
		}
		if notes := strings.Join(doc.Notes, "\n"); !strings.Contains(notes, c.problem) {
			t.Errorf("%s: notes %.300q, want %q", name, notes, c.problem)
		}
	}
}

// A linearized file has two tables, the first one in front of the objects of its first
// page.
func TestLinearizedPDFWithTables(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	at := b.Len
	b.WriteString("%PDF-1.4\n")
	linearized := at()
	b.WriteString("5 0 obj\n<< /Linearized 1 /L 900000 /H [ 700000 120 ] /O 7 /E 850000 /N 1 /T 880000 >>\nendobj\n")
	first := at()
	const entries = 4
	b.WriteString(strings.Repeat(" ", 40+20*entries) + "\n") // of the first table, filled in below
	trailerAt := at()
	b.WriteString(strings.Repeat(" ", 120) + "\nstartxref\n0\n%%EOF\n")
	catalog := at()
	b.WriteString("6 0 obj\n<< /Type /Catalog /Pages 1 0 R >>\nendobj\n")
	pageAt := at()
	b.WriteString("7 0 obj\n<< /Type /Page /Parent 1 0 R /Contents 8 0 R /Resources << /Font << /F 2 0 R >> >> >>\nendobj\n")
	content := at()
	b.WriteString("8 0 obj\n" + stream("", "BT /F 12 Tf 90000000 10 Td (readable) Tj ET") + "\nendobj\n")
	pages := at()
	b.WriteString("1 0 obj\n<< /Type /Pages /Kids [7 0 R] /Count 1 >>\nendobj\n")
	font := at()
	b.WriteString("2 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n")
	second := at()
	fmt.Fprintf(&b, "xref\n0 3\n0000000000 65535 f \n%010d 00000 n \n%010d 00000 n \ntrailer\n<< /Size 3 >>\nstartxref\n%d\n%%%%EOF\n", pages, font, first)
	file := []byte(b.String())
	copy(file[first:], fmt.Sprintf("xref\n5 %d\n%010d 00000 n \n%010d 00000 n \n%010d 00000 n \n%010d 00000 n \n", entries, linearized, catalog, pageAt, content))
	copy(file[trailerAt:], fmt.Sprintf("trailer\n<< /Size 9 /Root 6 0 R /Prev %d >>", second))
	doc, err := extract.Parse(t.Context(), extract.Source{URL: &url.URL{Scheme: "http", Host: "a.example"}, ContentType: "application/pdf", Body: file})
	if err != nil {
		t.Fatal(err)
	}
	if got := doc.Content(true).Text(); got != "readable" {
		t.Errorf("got %q", got)
	}
}

// An object stream that is said to be inside of itself is refused.
func TestPDFObjectStreamInItself(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("%PDF-1.5\n")
	at := b.Len()
	// Object 1 is in the object stream 1; object 2 is this table.
	entries := "\x00\x00\x00\x00" + "\x02\x00\x01\x00" + "\x01\x00\x09\x00"
	fmt.Fprintf(&b, "2 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n", stream("/Type /XRef /Size 3 /W [1 2 1] /Root 1 0 R", entries), at)
	_, err := extract.Parse(t.Context(), extract.Source{URL: &url.URL{Scheme: "http", Host: "a.example"}, ContentType: "application/pdf", Body: []byte(b.String())})
	if err == nil || !strings.Contains(err.Error(), "an object stream contains itself") {
		t.Errorf("got %v", err)
	}
}

// Files of qpdf 11.3 and pypdf 7.1 that are encrypted with AES-256 and an empty user
// password have the text and the properties of their originals.
func TestPDFWithAES256AndAnEmptyPassword(t *testing.T) {
	t.Parallel()
	for name, original := range map[string]string{
		"aes256-qpdf.pdf": "reportlab.pdf", "aes256-r5.pdf": "reportlab.pdf", "aes256-objects.pdf": "chromium.pdf", "aes256-pypdf.pdf": "fpdf2.pdf",
	} {
		got, want := parse(t, "application/pdf", readFile(t, "testdata/"+name)), parse(t, "application/pdf", readFile(t, "testdata/"+original))
		if diff := cmp.Diff(want.Content(true).Text(), got.Content(true).Text()); diff != "" || len(got.Notes) > 0 {
			t.Errorf("%s (-want +got), notes %q:\n%s", name, got.Notes, diff)
		}
		if name == "aes256-pypdf.pdf" {
			want.Metadata.Title, want.Metadata.Author = `Gezeiten (ü) \ 1`, "A"
		}
		if diff := cmp.Diff(want.Metadata, got.Metadata); diff != "" {
			t.Errorf("%s: properties (-want +got):\n%s", name, diff)
		}
	}
	whole := readFile(t, "testdata/aes256-password.pdf")
	_, err := extract.Parse(t.Context(), extract.Source{URL: &url.URL{Scheme: "http", Host: "a.example"}, ContentType: "application/pdf", Body: []byte(whole)})
	if err == nil || !strings.Contains(err.Error(), "it is encrypted with a password") {
		t.Errorf("a file with a password: %v", err)
	}
	encrypted := readFile(t, "testdata/aes256-qpdf.pdf")
	for _, junk := range []string{"(", "<", "%", "<4", "stream\nendstream", "stream\n", "/Encrypt 1 0 R", "/U("} {
		// It returns soon, with any result.
		body := []byte("%PDF-1.7\n" + strings.Repeat(junk, 1<<20/len(junk)) + encrypted[len("%PDF-1.7\n"):])
		_, _ = extract.Parse(t.Context(), extract.Source{URL: &url.URL{Scheme: "http", Host: "a.example"}, ContentType: "application/pdf", Body: body})
	}
}

func TestPDFVersion2(t *testing.T) {
	t.Parallel()
	file := readFile(t, "testdata/reportlab.pdf")
	want := parse(t, "application/pdf", file).Content(true).Text()
	if got := parse(t, "application/pdf", strings.Replace(file, "%PDF-1.4", "%PDF-2.0", 1)).Content(true).Text(); got != want || got == "" {
		t.Errorf("got %q", got)
	}
}

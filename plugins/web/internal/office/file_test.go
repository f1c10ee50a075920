package office

import (
	"archive/zip"
	"bytes"
	"errors"
	"strings"
	"testing"
)

// zipOf returns a ZIP file with files as NAME, TEXT, ...
func zipOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnpackedSizeIsBounded(t *testing.T) {
	t.Parallel()
	large := "<document>" + strings.Repeat(" ", 80<<10) + "</document>"
	body := zipOf(t, "word/document.xml", large, "word/styles.xml", large)
	_, ok, err := Read(t.Context(), "a.docx", body, Limits{Bytes: 100 << 10})
	if !ok || !errors.Is(err, errTooLarge) {
		t.Errorf("both files: %v %v", ok, err)
	}
	if _, ok, err = Read(t.Context(), "a.docx", body, Limits{Bytes: 200 << 10}); !ok || err != nil {
		t.Errorf("within the limit: %v %v", ok, err)
	}
}

// Files that are decoded as a whole are smaller: a style of 8 bytes takes 100 in memory.
func TestDecodedSizeIsBounded(t *testing.T) {
	t.Parallel()
	large := strings.Repeat(" ", maxXML)
	for _, body := range [][]byte{
		zipOf(t, "word/document.xml", "<document/>", "word/styles.xml", "<styles>"+large+"</styles>"),
		zipOf(t, "xl/workbook.xml", "<workbook/>", "xl/styles.xml", "<styles>"+large+"</styles>"),
		zipOf(t, "xl/workbook.xml", "<workbook/>", `xl\SharedStrings.xml`, "<sst>"+strings.Repeat(large, maxTexts/maxXML)+"</sst>"),
	} {
		if _, ok, err := Read(t.Context(), "a", body, Limits{Bytes: 128 << 20}); !ok || !errors.Is(err, errTooLarge) {
			t.Errorf("%v %v", ok, err)
		}
	}
}

// Each attempt to unpack a file that is too large takes as long as unpacking the limit.
func TestLargeImagesAreNotUnpackedAgain(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 100<<10)
	a, err := openArchive(zipOf(t, "a.png", large, "b.png", large, "c.png", "x"), 150<<10)
	if err != nil {
		t.Fatal(err)
	}
	f := &File{}
	f.addImages(t.Context(), a, Limits{Images: 5, ImageBytes: 1 << 20})
	if len(f.Images) != 1 || len(f.Notes) != 1 || a.left != 0 {
		t.Errorf("%d images, %q, %d bytes left", len(f.Images), f.Notes, a.left)
	}
}

func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	const more = maxParts + 5
	slides := strings.Repeat(`<sldId r:id="a"/>`, more)
	mail := "From: a@example.com\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\nx\r\n", more) + "--b--"
	for name, body := range map[string][]byte{
		"a.pptx": zipOf(t, "ppt/presentation.xml", `<p xmlns:r="r"><sldIdLst>`+slides+`</sldIdLst></p>`, "ppt/_rels/presentation.xml.rels", `<r><Relationship Id="a" Target="a.xml"/></r>`, "ppt/a.xml", "<a/>"),
		"a.eml":  []byte(mail),
	} {
		f, _, err := Read(t.Context(), name, body, Limits{Bytes: 1 << 20})
		if err != nil || len(f.Parts) > maxParts+1 || len(f.Notes) != 1 {
			t.Errorf("%s: %v %+v", name, err, f)
		}
	}
}

// A text refers to a footnote any number of times, which must not repeat the note.
func TestFootnotesAreNotRepeated(t *testing.T) {
	t.Parallel()
	body := zipOf(t, "word/document.xml", "<document><p>"+strings.Repeat(`<footnoteReference id="1"/>`, 1000)+"</p></document>",
		"word/footnotes.xml", `<n><footnote id="1"><p><r><t>`+strings.Repeat("x", 100<<10)+`</t></r></p></footnote></n>`)
	f, _, err := Read(t.Context(), "a.docx", body, Limits{Bytes: 1 << 20})
	if err != nil || len(f.Parts[0].Body) > 200<<10 {
		t.Errorf("%v", err)
	}
}

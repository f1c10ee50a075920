package web_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/the-edge-agent/tea/plugins/web"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// textOf reads a file in dir; result is what text.extract returns as JSON values.
func textOf(t *testing.T, dir string, params map[string]any) (result map[string]any, err error) {
	t.Helper()
	given, err := teatest.Call(t, web.Bundle(), teatest.Request{
		Action: "text.extract", Settings: map[string]any{"file": map[string]any{"root": dir, "max_bytes": 1 << 20}}, Params: params,
	})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	return result, json.Unmarshal(raw, &result)
}

// must is textOf without an error.
func must(t *testing.T, dir string, params map[string]any) map[string]any {
	t.Helper()
	result, err := textOf(t, dir, params)
	if err != nil {
		t.Fatalf("%v: %v", params, err)
	}
	return result
}

// The files were written by Python libraries.
func TestTextOfDocuments(t *testing.T) {
	t.Parallel()
	python := filepath.Join(peertest.Dir(t, "../..", "office"), "python", "bin", "python")
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), python, "../../test/office/write.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pdf, err := os.ReadFile("internal/extract/testdata/reportlab.pdf")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "paper.pdf"), pdf, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "notes.md"), []byte("# Notes\n\n*kept*\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const report = "# Pump report\n\n# Findings\n\nThe pressure is **too low** & *falls*.\n\n- first\n  \n  - inner\n- second\n\n1. one\n\n" +
		"| pump | bar |\n|---|---|\n| p-1 | 1 \\| 2 |\n\nDeleted: [the manual](https://example.com/a?b=1&c)"
	for name, want := range map[string]string{
		"report.docx": report,
		"deck.pptx":   "# Plan\n\n- buy\n  \n  - seals\n\n> Say why.\n\n# Costs\n\n| part | EUR |\n|---|---|\n| seal | 3.50 |",
		"book.xlsx": "## Readings\n\n| day | bar | ok |\n|---|---|---|\n| 2026-11-29 | 1.5 | TRUE |\n| a  <br />b | 25% | FALSE |\n\n" +
			"## More\n\n|  |  | far |\n|---|---|---|",
		"guide.epub": "# Start\n\nRead me.\n\n# End\n\nDone.",
		"mail.eml": "**From:** Zoë (zoe@example.com)  \n**To:** ops@example.com  \n**Date:** Sun, 29 Nov 2026 10:00:00 +0000  \n**Subject:** Pump ✓\n\n" +
			"See the **report**, ž.\n\n" + report + "\n\n```csv\na;b\n```",
		"notes.md": "# Notes\n\n*kept*",
	} {
		got := must(t, dir, map[string]any{"path": name})
		if diff := cmp.Diff(want, got["text"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got["parts"] != nil || got["images"] != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, want := range map[string]string{
		"report.docx": "docx, Pump report, Ana: 1 Pump report",
		"deck.pptx":   "pptx, , : 1 Slide 1, 2 Slide 2",
		"book.xlsx":   "xlsx, , openpyxl: 1 Readings, 2 Empty, 3 More",
		"guide.epub":  "epub, Field guide, Ben: 1 Part 1, 2 Part 2",
		"mail.eml":    "email, Pump ✓, Zoë (zoe@example.com): 1 , 2 , 3 report.docx, 4 data.csv",
		"paper.pdf":   "pdf, (anonymous), (anonymous): 1 Page 1",
		"notes.md":    "markdown, , : 1 ",
	} {
		raw, err := json.Marshal(must(t, dir, map[string]any{"path": name, "split": true}))
		var got struct {
			Format   string
			Metadata struct{ Title, Author string }
			Parts    []struct {
				Number int
				Title  string
			}
		}
		if err == nil {
			err = json.Unmarshal(raw, &got)
		}
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, p := range got.Parts {
			parts = append(parts, fmt.Sprint(p.Number, " ", p.Title))
		}
		if is := fmt.Sprintf("%s, %s, %s: %s", got.Format, got.Metadata.Title, got.Metadata.Author, strings.Join(parts, ", ")); is != want {
			t.Errorf("%s: %s\nexpected %s", name, is, want)
		}
	}
	dot, err := os.ReadFile(filepath.Join(dir, "dot.png"))
	if err != nil {
		t.Fatal(err)
	}
	image := func(name string) any {
		return map[string]any{"name": name, "media_type": "image/png", "data": base64.StdEncoding.EncodeToString(dot)}
	}
	for name, want := range map[string][]any{
		"report.docx": {image("word/media/image1.png")},
		"deck.pptx":   {image("ppt/media/image1.png")},
		"mail.eml":    {image("dot.png"), image("word/media/image1.png")},
	} {
		if diff := cmp.Diff(want, must(t, dir, map[string]any{"path": name, "images": 5})["images"]); diff != "" {
			t.Errorf("images of %s (-want +got):\n%s", name, diff)
		}
	}
	notes := []any{"the attachment firmware.bin: application/octet-stream has no text that can be read"}
	if diff := cmp.Diff(notes, must(t, dir, map[string]any{"path": "mail.eml"})["notes"]); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

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

func TestTextOfHostileFiles(t *testing.T) {
	t.Parallel()
	const document = "word/document.xml"
	whole := zipOf(t, document, "<document><body><p><r><t>x</t></r></p></body></document>")
	book := excelize.NewFile()
	for row := range 40 {
		if err := book.SetCellStr("Sheet1", fmt.Sprintf("XFD%d", row+1), "x"); err != nil {
			t.Fatal(err)
		}
	}
	wide, err := book.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, body := range map[string][]byte{
		"whole.docx":   whole,
		"torn.docx":    whole[:len(whole)/2],
		"deep.docx":    zipOf(t, document, strings.Repeat("<a>", 600)),
		"unclosed":     zipOf(t, document, "<document><p>"),
		"other.zip":    zipOf(t, "readme", "x"),
		"old.doc":      []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"),
		"empty.eml":    nil,
		"large.txt":    bytes.Repeat([]byte("x"), 2<<20),
		"book.epub":    zipOf(t, "META-INF/container.xml", "<container/>"),
		"slides.pptx":  zipOf(t, "ppt/presentation.xml", `<p xmlns:r="r"><sldIdLst><sldId r:id="none"/></sldIdLst></p>`),
		"far.xlsx":     wide.Bytes(),
		"entity.docx":  zipOf(t, document, `<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/hostname">]><d><p><r><t>&e;</t></r></p></d>`),
		"up/name.docx": whole,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"torn.docx":      "validation_error: torn.docx cannot be read: zip:",
		"deep.docx":      "validation_error: deep.docx cannot be read: word/document.xml: elements are nested deeper than 500",
		"unclosed":       "validation_error: unclosed cannot be read: word/document.xml: XML syntax error",
		"other.zip":      "validation_error: other.zip: application/zip has no text that can be read",
		"old.doc":        "validation_error: old.doc has the format of Office before 2007, or is encrypted",
		"empty.eml":      "validation_error: empty.eml cannot be read: it has no header",
		"large.txt":      "resource_exhausted: large.txt has 2097152 bytes or more",
		"book.epub":      "validation_error: book.epub cannot be read: META-INF/container.xml names no package",
		"slides.pptx":    "validation_error: slides.pptx cannot be read: slide 1: ",
		"entity.docx":    "validation_error: entity.docx cannot be read: word/document.xml: XML syntax error on line 1: invalid character entity &e;",
		"none.pdf":       "not_found: ",
		"../secret.docx": "permission_denied: ",
		"up":             "validation_error: ",
	} {
		if got, err := textOf(t, dir, map[string]any{"path": name}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v %v, expected %s", name, got, err, want)
		}
	}
	if got := must(t, dir, map[string]any{"path": "whole.docx"}); got["text"] != "x" {
		t.Errorf("whole.docx: %v", got)
	}
	if got := must(t, dir, map[string]any{"path": "far.xlsx"}); !strings.Contains(fmt.Sprint(got["notes"]), "the sheet Sheet1 was cut off: more than 300000 cells and rows") {
		t.Errorf("far.xlsx: %.300v", got["notes"])
	}
}

// Nothing is lost without a note.
func TestTextIsComplete(t *testing.T) {
	t.Parallel()
	p := func(text string) string { return "<p><r><t>" + text + "</t></r></p>" }
	document := func(body string) []byte {
		return zipOf(t, "word/document.xml", "<document><body>"+body+"</body></document>")
	}
	message := func(head, body string) []byte {
		return []byte(strings.ReplaceAll("From: a@example.com\nMIME-Version: 1.0\n"+head+"\n\n"+body, "\n", "\r\n"))
	}
	relation := func(kind, target string) string {
		return `<Relationship Id="` + kind + `" Type="x/` + kind + `" Target="` + target + `"/>`
	}
	chapter := func(text string) string { return "<html><body><p>" + text + "</p></body></html>" }
	const from = "**From:** a@example.com\n\n"
	for name, c := range map[string]struct {
		body  []byte
		want  string
		notes []any
	}{
		"marks.docx": {document(`<p><smartTag><r><t>a</t></r></smartTag><sdt><sdtContent><r><t>b</t></r></sdtContent></sdt><ins><r><t>c</t></r></ins><del><r><delText>x</delText></r></del>` +
			`<r><t>e</t><noBreakHyphen/><t>mail</t></r></p>`), "abce-mail", nil},
		"tables.docx": {document("<tbl><tr><tc>" + p("a") + "<tbl><tr><tc>" + p("in") + "</tc><tc>" + p("ner") + "</tc></tr></tbl></tc><tc>" + p("b") + "</tc></tr></tbl>"), "a\n\n| in | ner |\n|---|---|\n\nb", nil},
		"merged.docx": {
			document(`<tbl><tr><tc><tcPr><gridSpan val="2"/></tcPr>` + p("wide") + "</tc><tc>" + p("c") + "</tc></tr><tr><tc>" + p("1") + "</tc><tc>" + p("2") + "</tc><tc>" + p("3") + "</tc></tr></tbl>"),
			"| wide |  | c |\n|---|---|---|\n| 1 | 2 | 3 |", nil,
		},
		"box.docx":   {document(`<p><r><t>before</t><pict><textbox><txbxContent>` + p("boxed") + `</txbxContent></textbox></pict></r><r><t> after</t></r></p>`), "boxed\n\nbefore after", nil},
		"notes.docx": {zipOf(t, "word/document.xml", `<document><p><r><t>a</t><footnoteReference id="1"/><t>b</t><footnoteReference id="1"/></r></p></document>`, "word/footnotes.xml", `<footnotes><footnote id="1">`+p("note")+`</footnote></footnotes>`), "a \\[1]b \\[1]\n\n\\[1] note", nil},
		"numbered.docx": {zipOf(t, "_rels/.rels", "<Relationships>"+relation("officeDocument", "/word/document2.xml")+"</Relationships>",
			"word/document2.xml", `<document><p><pPr><pStyle val="h"/></pPr><r><t>title</t></r></p></document>`,
			"word/_rels/document2.xml.rels", "<Relationships>"+relation("styles", "styles2.xml")+"</Relationships>",
			"word/styles2.xml", `<styles><style styleId="h"><name val="heading 2"/></style></styles>`), "## title", nil},
		"part.epub": {zipOf(t, "META-INF/container.xml", `<container><rootfiles><rootfile full-path="book/package.opf"/></rootfiles></container>`,
			"META-INF/encryption.xml", `<encryption><EncryptedData><CipherData><CipherReference URI="book/b.xhtml"/></CipherData></EncryptedData></encryption>`,
			"book/package.opf", `<package><manifest><item id="a" href="a.html" media-type="text/html"/><item id="b" href="b.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>`,
			"book/a.html", chapter("one"), "book/b.xhtml", "\x81\x82"), "one", []any{"chapters were left out: they are encrypted"}},
		"names.eml": {
			message("Content-Type: multipart/mixed; boundary=b", "--b\nContent-Type: text/plain; charset=utf-8; name=my text.txt\n\nhi\n"+
				"--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename=my report.csv\n\n1,2\n"+
				"--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename=\"=?utf-8?Q?caf=C3=A9.csv?=\"\n\n3,4\n"+
				"--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename*0*=utf-8''caf%C3%A9; filename*1*=2.csv\n\n5,6\n"+
				"--b\nContent-Type: text/plain\nContent-Disposition: attachment\n\nnameless\n"+
				"--b\nContent-Type: text/csv\n\n7,8\n--b\nContent-Type: application/octet-stream\n\n\x00\x01\n--b--"),
			from + "hi\n\n```csv\n1,2\n```\n\n```csv\n3,4\n```\n\n```csv\n5,6\n```\n\nnameless\n\n```csv\n7,8\n```",
			[]any{"the attachment attachment3: application/octet-stream has no text that can be read"},
		},
		"mixed.eml": {
			message("Content-Type: multipart/alternative; boundary=a", "--a\nContent-Type: text/plain\n\nplain\n--a\nContent-Type: multipart/mixed; boundary=b\n\n"+
				"--b\nContent-Type: text/csv; name=a.csv\n\n1,2\n--b\nContent-Type: text/html\n\n<p>rich</p>\n--b--\n--a\nContent-Type: text/calendar\n\nBEGIN:VCALENDAR\n--a--"),
			from + "```csv\n1,2\n```\n\nrich", nil,
		},
		"latin.eml": {message("Content-Type: text/html", "<meta charset=iso-8859-1><p>caf\xe9 cr\xe8me</p>"), from + "café crème", nil},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), c.body, 0o600); err != nil {
			t.Fatal(err)
		}
		got := must(t, dir, map[string]any{"path": name})
		if diff := cmp.Diff(c.want, got["text"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		notes, _ := got["notes"].([]any)
		if diff := cmp.Diff(c.notes, notes); diff != "" {
			t.Errorf("notes of %s (-want +got):\n%s", name, diff)
		}
	}
}

// The images of all files in a message together are bounded.
func TestImagesOfAMessageAreBounded(t *testing.T) {
	t.Parallel()
	document := base64.StdEncoding.EncodeToString(zipOf(t, "word/document.xml", "<document/>", "word/media/a.png", strings.Repeat("x", 10<<20)))
	part := "--b\r\nContent-Type: application/octet-stream; name=a.docx\r\nContent-Transfer-Encoding: base64\r\n\r\n" + document + "\r\n"
	dir := t.TempDir()
	body := "From: a@example.com\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" + part + part + "--b--"
	if err := os.WriteFile(filepath.Join(dir, "a.eml"), []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	got := must(t, dir, map[string]any{"path": "a.eml", "images": 5})
	if images, _ := got["images"].([]any); len(images) != 1 || !strings.Contains(fmt.Sprint(got["notes"]), "images were left out") {
		t.Errorf("%d images, notes %v", len(images), got["notes"])
	}
}

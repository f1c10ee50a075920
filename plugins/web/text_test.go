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
	if got := must(t, dir, map[string]any{"path": "far.xlsx"}); !strings.Contains(fmt.Sprint(got["notes"]), "the sheet Sheet1 was cut off: more than 300000 cells") {
		t.Errorf("far.xlsx: %.300v", got["notes"])
	}
}

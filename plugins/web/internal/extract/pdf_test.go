package extract_test

import (
	"context"
	"net/url"
	"os"
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

package extract_test

import (
	_ "embed"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/the-edge-agent/tea/plugins/web/internal/extract"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// corpus has the names of the files of scripts/pdfs, each with the number of letters and digits that pypdf 7.1.1 reads.
// annotTest.pdf and testWithText.pdf have free-text annotations, which pypdf does not read.
//
//go:embed testdata/corpus.txt
var corpus string

// The number of letters and digits in real files is within three percent of what pypdf reads.
func TestPDFFilesOfPackages(t *testing.T) {
	t.Parallel()
	dir := peertest.Dir(t, "../../../..", "pdfs")
	for line := range strings.Lines(corpus) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), "\t")
		want, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, r := range parse(t, "application/pdf", readFile(t, filepath.Join(dir, name))).Content(true).Text() {
			if unicode.IsLetter(r) || unicode.IsNumber(r) {
				got++
			}
		}
		if 100*max(got-want, want-got) > 3*want+500 {
			t.Errorf("%s: %d letters, pypdf has %d", name, got, want)
		}
	}
}

// The size of an attached file must not count as a number of objects.
func TestPDFWithALargeAttachment(t *testing.T) {
	t.Parallel()
	for attached, readable := range map[string]bool{
		"/Params<</ModDate(D:20220708002400+02'00')/Size 1207408>>": true, "/Params << /Size 1207408 >>": true,
		"/Size 1207408": false, "% /Params<<\n/Size 1207408": false, "/X (/Params<<) /Size 1207408": false, `/X (/Params<<\() /Size 1207408`: false,
		"/X (/Params<<#28) /Size 1207408": false, "/Params<</S#69ze 1207408>>": true, "/S#69ze 1207408": false,
	} {
		body := makePDF("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "<< /Type /Page /Contents 4 0 R >>",
			stream("", "BT (readable) Tj ET"), stream("/Type /EmbeddedFile "+attached, ""))
		_, err := extract.Parse(t.Context(), extract.Source{URL: &url.URL{Scheme: "https", Host: "site.example"}, ContentType: "application/pdf", Body: []byte(body)})
		if refused := err != nil && strings.Contains(err.Error(), "too many objects"); refused == readable {
			t.Errorf("%s: %v", attached, err)
		}
	}
}

func TestPDFAfterOtherData(t *testing.T) {
	t.Parallel()
	body := "job: 7\r\n" + readFile(t, "testdata/reportlab.pdf")
	if text := parse(t, "application/pdf", body).Content(true).Text(); !strings.Contains(text, "The gateway records") {
		t.Errorf("the text is %.100q", text)
	}
}

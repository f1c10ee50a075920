package extract_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/web/internal/extract"
)

// A page cannot become many times larger by what the parser and the converter
// repeat.
func TestPageDoesNotMultiply(t *testing.T) {
	t.Parallel()
	var distinct strings.Builder
	for i := range 150 {
		distinct.WriteString("<b x=" + strings.Repeat("i", i) + ">")
	}
	for name, body := range map[string]string{
		"formatting that is not closed": "<p>" + distinct.String() + "</p>" + strings.Repeat("<p>x", 5_000),
		"spans":                         "<p>x</p><table><tr><td rowspan=1000000000 colspan=1000000000>x<td>y</table>",
		"many spans":                    "<p>x</p><table>" + strings.Repeat("<tr>"+strings.Repeat("<td rowspan=1000 colspan=1000>x", 50), 50) + "</table>",
		"one long row":                  "<p>x</p><table><tr>" + strings.Repeat("<td>x", 2_000) + strings.Repeat("<tr><td>x", 2_000) + "</table>",
		"one wide cell":                 "<p>x</p><table><tr><td>x" + strings.Repeat("w", 10_000) + strings.Repeat("<tr><td>x", 2_000) + "</table>",
		"quotes in quotes":              "<p>x</p>" + strings.Repeat("<blockquote>", 150) + strings.Repeat("x<br>", 2_000),
		"lists in lists":                "<p>x</p>" + strings.Repeat("<ul><li>", 150) + strings.Repeat("x<br>", 2_000),
		"tables in tables":              "<p>x</p>" + strings.Repeat("<table><tr><td>x", 30),
	} {
		content := parse(t, "text/html", body).Content(false)
		limit := 10*len(body) + 10_000
		if n := len(content.HTML()); n > limit {
			t.Errorf("%s: %d bytes have become %d bytes of HTML", name, len(body), n)
		}
		if got, want := strings.Count(content.Text(), "x"), strings.Count(body, ">x"); got < want {
			t.Errorf("%s: %d texts are left of %d", name, got, want)
		}
		if n := len(content.Markdown()); n > limit {
			t.Errorf("%s: %d bytes have become %d bytes of Markdown", name, len(body), n)
		}
	}
}

// Formatting that is not closed in the cells of a table, as in old pages, is
// kept in a page of usual size.
func TestFormattingOfOldPages(t *testing.T) {
	t.Parallel()
	doc := parse(t, "text/html", "<table>"+strings.Repeat("<tr><td><font size=2><b>bold</td></tr>", 200)+"</table>")
	if got := doc.Content(false).Markdown(); strings.Count(got, "**bold**") != 200 || doc.Notes != nil {
		t.Errorf("notes %q, Markdown %.200s", doc.Notes, got)
	}
}

// A page of too many elements is cut, with a note.
func TestTooManyElements(t *testing.T) {
	t.Parallel()
	body := "<p>first</p>" + strings.Repeat("<i></i>", 5_000) + "<p>last</p>"
	doc, err := extract.Parse(t.Context(), extract.Source{URL: &url.URL{Scheme: "http", Host: "a.example"}, ContentType: "text/html", Body: []byte(body), MaxElements: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"the page has too many elements; everything after the first 1000 was left out"}, doc.Notes); diff != "" {
		t.Error(diff)
	}
	if got := doc.Content(false).Text(); got != "first" {
		t.Errorf("got %.100q", got)
	}
}

// A table of many blocks of code is not compared with each of them.
func TestCodeBlocksInTable(t *testing.T) {
	t.Parallel()
	doc := parse(t, "text/html", "<table>"+strings.Repeat("<tr><td><pre>x y</pre></td></tr>", 5_000)+"</table>")
	if got := strings.Count(doc.Content(true).Text(), "x y"); got != 5_000 {
		t.Errorf("%d blocks", got)
	}
}

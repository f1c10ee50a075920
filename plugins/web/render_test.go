package web_test

import (
	"encoding/base64"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/web"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// needsChromium skips a test where no Chromium is installed; in CI that is a
// failure.
func needsChromium(t *testing.T) {
	t.Helper()
	peertest.Long(t, "needs a real browser")
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("run scripts/chromium install: ", err)
	}
}

const app = `<!DOCTYPE html><html lang=en><head><title>Loading</title></head><body><div id=app></div><script>
const paragraph = "The shop sells pots of clay from the north, and each of them holds one litre of tea, which is enough for four cups. "
setTimeout(() => {
	document.title = "The shop"
	document.getElementById("app").innerHTML = "<main><article><h1>Pots</h1><p>" + paragraph.repeat(5) + "</p><p>See the <a href=/cups>cups</a>.</p></article></main>"
}, 100)
</script></body></html>`

// onePagePDF is a PDF file with one line.
const onePagePDF = `%PDF-1.4
1 0 obj
<< /Type /Catalog /Pages 2 0 R >>
endobj
2 0 obj
<< /Type /Pages /Kids [3 0 R] /Count 1 >>
endobj
3 0 obj
<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 144] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>
endobj
4 0 obj
<< /Length 48 >>
stream
BT /F1 18 Tf 20 100 Td (A paper about tea) Tj ET
endstream
endobj
5 0 obj
<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>
endobj
xref
0 6
0000000000 65535 f 
0000000009 00000 n 
0000000058 00000 n 
0000000115 00000 n 
0000000241 00000 n 
0000000339 00000 n 
trailer
<< /Size 6 /Root 1 0 R >>
startxref
409
%%EOF
`

func TestRender(t *testing.T) {
	t.Parallel()
	needsChromium(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte(app))
		case "/tall", "/endless":
			height := map[string]string{"/tall": "3000", "/endless": "40000"}[r.URL.Path]
			fmt.Fprintf(w, "<title>Tall</title><body style='margin: 0'><div style='height: %spx'>text</div>", height)
		case "/paper":
			w.Header().Set("Content-Type", "application/pdf")
			w.Write([]byte(onePagePDF))
		case "/file":
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Disposition", "attachment; filename=a.txt")
			w.Write([]byte("a file to download"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	scrape := func(path string, params map[string]any) (map[string]any, *tea.Error) {
		params["url"] = server.URL + path
		got, err := teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.scrape", Params: params, Settings: map[string]any{
			"web": map[string]any{"allow_private": true, "cache_max_bytes": 0, "host_delay": 0, "timeout": 120},
		}})
		result, _ := got.(map[string]any)
		return result, tea.AsError(err)
	}
	got, failure := scrape("/", map[string]any{"render": true, "wait_for": "article", "formats": []any{"markdown", "links", "screenshot"}})
	if failure != nil {
		t.Fatal(failure)
	}
	if text, _ := got["markdown"].(string); !strings.Contains(text, "pots of clay") || !strings.Contains(text, "[cups]("+server.URL+"/cups)") {
		t.Errorf("got %q", text)
	}
	if metadata, _ := got["metadata"].(map[string]any); metadata["title"] != "The shop" || metadata["status_code"] != int64(200) {
		t.Errorf("got %v", metadata)
	}
	shot, err := base64.StdEncoding.DecodeString(got["screenshot"].(string))
	if err != nil || !strings.HasPrefix(string(shot), "\x89PNG") {
		t.Errorf("the screenshot has %d bytes, %v", len(shot), err)
	}
	for path, want := range map[string]int{"/tall": 3000, "/endless": 16384} {
		got, failure = scrape(path, map[string]any{"formats": []any{"screenshot"}, "full_page": true})
		if failure != nil {
			t.Fatal(failure)
		}
		picture, err := png.DecodeConfig(base64.NewDecoder(base64.StdEncoding, strings.NewReader(got["screenshot"].(string))))
		if err != nil || picture.Width != 1280 || picture.Height != want {
			t.Errorf("%s: the screenshot has %d x %d pixels, want a height of %d: %v", path, picture.Width, picture.Height, want, err)
		}
		if isCut := strings.Contains(fmt.Sprint(got["notes"]), "the first 16384 of 40000 rows"); isCut != (path == "/endless") {
			t.Errorf("%s: notes %v", path, got["notes"])
		}
	}
	if _, failure = scrape("/none", map[string]any{"render": true}); failure == nil || failure.Type != tea.NotFound {
		t.Errorf("a page that is not there: got %v", failure)
	}
	if got, failure = scrape("/paper", map[string]any{"render": true, "formats": []any{"text"}}); failure != nil || !strings.Contains(got["text"].(string), "A paper about tea") {
		t.Errorf("a PDF file: got %v, %v", got, failure)
	}
	if got, failure = scrape("/file", map[string]any{"render": true, "formats": []any{"text"}}); failure != nil || !strings.Contains(got["text"].(string), "a file to download") {
		t.Errorf("a download: got %v, %v", got, failure)
	}
}

// A crawl follows the links that scripts make.
func TestCrawlRenders(t *testing.T) {
	t.Parallel()
	needsChromium(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && r.URL.Path != "/cups" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(strings.Replace(app, "pots of clay", "pots of clay at "+r.URL.Path, 1)))
	}))
	t.Cleanup(server.Close)
	got, err := teatest.Call(t, web.Bundle(), teatest.Request{
		Action: "web.crawl", Params: map[string]any{"url": server.URL + "/", "render": true, "wait_for": "article"},
		Settings: map[string]any{"web": map[string]any{"allow_private": true, "cache_max_bytes": 0, "host_delay": 0, "timeout": 120}},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, _ := got.(map[string]any)
	var addresses []string
	for _, p := range result["pages"].([]any) {
		found, _ := p.(map[string]any)
		addresses = append(addresses, strings.TrimPrefix(found["url"].(string), server.URL))
	}
	if diff := cmp.Diff([]string{"/", "/cups"}, addresses); diff != "" {
		t.Errorf("%s%v", diff, result["failed"])
	}
}

func TestRenderWithoutBrowser(t *testing.T) {
	t.Parallel()
	for _, params := range []map[string]any{{"render": true}, {"formats": []any{"screenshot"}}} {
		params["url"] = "http://127.0.0.1:1/"
		_, err := teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.scrape", Params: params, Settings: map[string]any{
			"web": map[string]any{"allow_private": true, "chromium": map[string]any{"path": filepath.Join(t.TempDir(), "none")}},
		}})
		if e := tea.AsError(err); e == nil || e.Type != tea.DependencyMissing || !strings.Contains(e.Message, "apt-get install chromium") {
			t.Errorf("got %v", err)
		}
	}
}

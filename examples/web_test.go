package examples

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWeb runs the example web against a server with its site, and compares the
// Markdown with the README.
func TestWeb(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.FileServer(http.Dir("web/site")))
	t.Cleanup(site.Close)
	got, err := shell(t.Context(), "web", t.TempDir(), fmt.Sprintf(`tea run workflow.yaml -q -i '{"url": "%s/"}'`, site.URL))
	if err != nil || got.code != 0 {
		t.Fatalf("exit code %d: %v\n%s", got.code, err, got.stderr)
	}
	var state struct {
		Digest string
		Page   string
		Words  int
	}
	if err := json.Unmarshal([]byte(got.stdout), &state); err != nil {
		t.Fatal(err)
	}
	digest := "* [Pump station](URL/): 24 words\n* [Torque of the screws](URL/manual/torque.html): 68 words\n* [Alarms](URL/manual/alarms.html): 32 words"
	if diff := cmp.Diff(digest, strings.ReplaceAll(state.Digest, site.URL, "URL")); diff != "" {
		t.Errorf("digest (-want +got):\n%s", diff)
	}
	readme, err := os.ReadFile("web/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if page := strings.ReplaceAll(state.Page, site.URL, "http://127.0.0.1:8000"); !strings.Contains(string(readme), "````markdown\n"+page+"\n````") {
		t.Errorf("the README does not contain this page:\n%s", page)
	}
}

package firestore

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"firestore://my-project":             "projects/my-project/databases/(default)/documents",
		"firestore://my-project/":            "projects/my-project/databases/(default)/documents",
		"firestore://my-project/agents":      "projects/my-project/databases/agents/documents",
		"firestore://my-project/agents/x":    "must be firestore://PROJECT",
		"firestore://my-project?key=secret":  "must be firestore://PROJECT",
		"firestore://user:secret@my-project": "must be firestore://PROJECT",
		"firestore://":                       "must be firestore://PROJECT",
		"firestore://my-project/(default)":   "projects/my-project/databases/(default)/documents",
		"https://firestore.googleapis.com":   "must begin with firestore://",
		"":                                   "not set",
	} {
		got, err := database(url)
		if err != nil {
			if e := tea.AsError(err); e.Type != tea.ValidationError || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", url, err)
			}
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s is %s, want %s", url, got, want)
		}
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ endpoint, emulator, want string }{
		{"", "", service},
		{"", "127.0.0.1:8081", "http://127.0.0.1:8081"},
		{"", "[::1]:8081", "http://[::1]:8081"},
		{"", "firestore.example:8081", "on this device"},
		{"", "127.0.0.1:8081/path", "on this device"},
		{"", "user@127.0.0.1:8081", "on this device"},
		{"https://firestore.example/", "127.0.0.1:8081", "https://firestore.example"},
		{"http://localhost:1", "", "http://localhost:1"},
		{"http://firestore.example", "", "needs TLS"},
		{"https://user:secret@firestore.example", "", "must be https://HOST"},
		{"ftp://firestore.example", "", "must begin with"},
	} {
		got, _, err := options{Endpoint: test.endpoint}.address(test.emulator)
		if err != nil {
			if e := tea.AsError(err); e.Type != tea.ValidationError || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: %v", test, err)
			}
			got = err.Error()
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%v is %s", test, got)
		}
	}
}

// requests are the Authorization headers of the requests of a call.
func requests(t *testing.T, c store.Config) ([]string, error) {
	t.Helper()
	var seen []string
	trips := &servertest.Trips{Around: func(r *http.Request, _ func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if r.URL.Scheme != "https" {
			t.Errorf("a request to %s", r.URL)
		}
		seen = append(seen, r.URL.Host+" "+r.Header.Get("Authorization"))
		return servertest.Answer(http.StatusOK, "application/json", "[]"), nil
	}}
	stores, err := open(c, trips.Wrap)
	if err != nil {
		return nil, err
	}
	_, err = stores.Metadata.Count(t.Context(), store.DocumentQuery{Kind: "k"})
	return seen, err
}

// Without credentials no request is sent, not even to look for a metadata server.
func TestCredentials(t *testing.T) { // sets the environment
	t.Setenv(emulatorHost, "")
	t.Setenv(credentialsFile, "")
	c := config("firestore://project")
	seen, err := requests(t, c)
	if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied || len(seen) > 0 || !strings.Contains(e.Message, "settings.memory.token") {
		t.Errorf("without credentials: %v, %v", seen, err)
	}
	c.Token = "from-the-settings"
	if seen, err = requests(t, c); err != nil || len(seen) != 1 || seen[0] != "firestore.googleapis.com Bearer from-the-settings" {
		t.Errorf("with a token: %v, %v", seen, err)
	}
	c.Token = `{"type": "service_account", "private_key": "very-secret"}`
	if seen, err = requests(t, c); err == nil || tea.AsError(err).Type != tea.PermissionDenied || strings.Contains(err.Error(), "very-secret") {
		t.Errorf("with a broken key: %v, %v", seen, err)
	}
	c.Token = ""
	file := filepath.Join(t.TempDir(), "key.json")
	t.Setenv(credentialsFile, file)
	if _, err = requests(t, c); err == nil || tea.AsError(err).Type != tea.PermissionDenied {
		t.Errorf("with a missing file: %v", err)
	}
	if err := os.WriteFile(file, []byte("from-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if seen, err = requests(t, c); err != nil || len(seen) != 1 || seen[0] != "firestore.googleapis.com Bearer from-the-file" {
		t.Errorf("with a file: %v, %v", seen, err)
	}
}

func TestDocumentsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	stores := d.open(t, nil)
	// Fields as a client library writes them.
	root, err := database(d.url(t))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"fields": {"session_id": {"stringValue": "s1"}, "n": {"integerValue": "7"}, "at": {"timestampValue": "2026-03-01T12:00:00Z"}, "tags": {"arrayValue": {"values": [{"stringValue": "x"}]}}, "none": {"nullValue": null}, "in": {"mapValue": {"fields": {"f": {"doubleValue": 1.5}}}}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+d.server.Address+"/v1/"+root+"/sessions?documentId=s1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer owner")
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	doc, err := stores.Metadata.Get(t.Context(), "session", "s1")
	const want = `{"at":"2026-03-01T12:00:00.000000Z","in":{"f":1.5},"n":7,"none":null,"session_id":"s1","tags":["x"]}`
	if err != nil || string(doc.Body) != want || doc.Version != 1 {
		t.Errorf("%s in version %d, %v; want %s", doc.Body, doc.Version, err, want)
	}
	found, err := stores.Metadata.Query(t.Context(), store.DocumentQuery{Kind: "session", Where: []store.Condition{{Field: "n", Op: store.Eq, Value: int64(7)}}})
	if err != nil || len(found) != 1 {
		t.Errorf("found %v, %v", found, err)
	}
	if err := stores.Metadata.Apply(t.Context(), store.Change{Kind: "session", ID: "s1", Body: []byte(`{"n": 8}`), If: 1}); err != nil {
		t.Error(err)
	}
}

package firestore

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// example is the folder of the files that a user deploys.
const example = "../../../../examples/firestore"

// The rules let a user read own sessions, and nothing else.
func TestRulesOfTheExample(t *testing.T) {
	t.Parallel()
	rules, err := filepath.Abs(filepath.Join(example, "firestore.rules"))
	if err != nil {
		t.Fatal(err)
	}
	server := StartServer(t, "--rules="+rules)
	t.Cleanup(server.Stop)
	url := server.Create()
	stores := openAt(t, server.Address, config(url), func(h *http.Client) *http.Client { return h })
	for _, user := range []string{"ann", "ben"} {
		if err := stores.Metadata.Apply(t.Context(), store.Change{Kind: "session", ID: user + "-1", Body: []byte(`{"session_id": "` + user + `-1", "user_id": "` + user + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stores.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	root, err := database(url)
	if err != nil {
		t.Fatal(err)
	}
	status := func(user, method, path, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+server.Address+"/v1/"+root+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if user != "" { // a token that only an emulator accepts
			part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
			r.Header.Set("Authorization", "Bearer "+part(`{"alg":"none"}`)+"."+part(`{"sub":"`+user+`","user_id":"`+user+`"}`)+".")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body) // the status says all
		return resp.StatusCode
	}
	for _, test := range []struct {
		user, method, path, body string
		want                     int
	}{
		{"ann", http.MethodGet, "/sessions/ann-1", "", 200},
		{"ann", http.MethodGet, "/sessions/ben-1", "", 403},
		{"", http.MethodGet, "/sessions/ann-1", "", 403},
		{"ann", http.MethodPatch, "/sessions/ann-1", `{"fields": {"user_id": {"stringValue": "ben"}}}`, 403},
		{"ann", http.MethodDelete, "/sessions/ann-1", "", 403},
		{"ann", http.MethodGet, "/ltm/:a", "", 403},
		{"ann", http.MethodPost, "/ltm", `{"fields": {}}`, 403},
		{"ann", http.MethodGet, "/tea-ops", "", 403},
	} {
		if got := status(test.user, test.method, test.path, test.body); got != test.want {
			t.Errorf("%q, %s %s: status %d, want %d", test.user, test.method, test.path, got, test.want)
		}
	}
}

// The fields that are left out of the indexes are those that tea writes and does not
// select by.
func TestIndexesOfTheExample(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(example, "firestore.indexes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Indexes   []any `json:"indexes"`
		Overrides []struct {
			Collection string `json:"collectionGroup"`
			Field      string `json:"fieldPath"`
			TTL        bool   `json:"ttl"`
		} `json:"fieldOverrides"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	overridden := map[string]bool{}
	for _, o := range file.Overrides {
		overridden[o.Collection+" "+o.Field] = o.TTL
	}
	want := map[string]bool{opsName + " " + opExpiry: true, callsName + " " + opExpiry: true, rowsName + " " + bodyField: false, callsName + " result": false, "agent_memory embedding": false, collectionOf("file") + " " + bodyField: false}
	for _, name := range kinds {
		want[name+" "+bodyField] = false
	}
	for _, name := range []string{valueField, metadataField, "data"} {
		want[entriesName+" "+name] = false
	}
	want[opsName+" "+changedField] = false
	for _, name := range []string{spaceField, recordField, ofField} {
		want[changesName+" "+name] = false
	}
	for _, name := range []string{"text", metadataField, "embedding"} {
		want[itemsName+" "+name] = false
	}
	for name, ttl := range want {
		if got, ok := overridden[name]; !ok || got != ttl {
			t.Errorf("%s is not as expected", name)
		}
		delete(overridden, name)
	}
	if len(overridden) > 0 || len(file.Indexes) > 0 {
		t.Errorf("unknown: %v, %v", overridden, file.Indexes)
	}
}

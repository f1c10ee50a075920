package gcs

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/objtest"
)

func TestKeysOfTheEnvironmentSignRequests(t *testing.T) {
	for _, name := range []string{"GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"} {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("APPDATA", home)
	t.Setenv("GCS_ACCESS_KEY_ID", "GOOG1EXAMPLE")
	t.Setenv("GCS_SECRET_ACCESS_KEY", "secret")
	var mu sync.Mutex
	var asked []string
	scheme := objtest.Rerouted(t, Scheme(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		key, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
		asked = append(asked, r.Method+" "+r.Host+r.URL.Path+" "+key)
		w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
	}))
	b, err := objstore.Open(t.Context(), "gs://bucket/graph", objstore.Settings{Attempts: 1}, scheme)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	objtest.Put(t, b, "a.jsonl", "content")
	mu.Lock()
	defer mu.Unlock()
	if want := "PUT storage.googleapis.com/bucket/graph/a.jsonl GOOG1EXAMPLE"; strings.Join(asked, ", ") != want {
		t.Errorf("requests: %q, want %q", asked, want)
	}
}

func TestObjectsWithHMACKeys(t *testing.T) {
	t.Parallel()
	server := objtest.S3(t)
	server.Address = strings.Replace(server.Address, "s3://", "gs://", 1)
	b := server.Open(t, nil, Scheme())
	objtest.Put(t, b, "a", "content")
	if got := objtest.Content(t, b, "a", 0, -1); got != "content" {
		t.Errorf("the object has %q", got)
	}
	_, err := b.Put(t.Context(), "a", strings.NewReader("other"), objstore.PutOptions{Match: objstore.Absent})
	if err == nil || tea.AsError(err).Type != tea.ValidationError || !strings.Contains(err.Error(), "ignores conditions") {
		t.Errorf("a conditional write: %v", err)
	}
}

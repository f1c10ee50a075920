package gcs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
)

// The metadata server of the machine is asked only if the user wants so.
func TestMetadataServer(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Metadata-Flavor", "Google")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "t", "expires_in": 3600, "token_type": "Bearer"}`))
	}))
	t.Cleanup(server.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("APPDATA", t.TempDir())
	a := &auth{http: http.DefaultClient}
	if _, err := a.credentials(); err == nil || tea.AsError(err).Type != tea.PermissionDenied || !strings.Contains(err.Error(), "metadata_server") {
		t.Errorf("without credentials: %v", err)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the metadata server was asked %d times", n)
	}
	a = &auth{settings: objstore.Settings{MetadataServer: true}, http: http.DefaultClient}
	if _, err := a.credentials(); err != nil {
		t.Fatal(err)
	}
	if token, err := a.tokens.Token(t.Context()); err != nil || token.AccessToken != "t" || asked.Load() == 0 {
		t.Errorf("with metadata_server: %v, %v", token, err)
	}
}

package s3

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
)

// keys returns the access key that the settings and the environment lead to.
func keys(t *testing.T, s objstore.Settings) (string, error) {
	t.Helper()
	v, err := credentialsOf(s).GetWithContext(&credentials.CredContext{Client: http.DefaultClient})
	return v.AccessKeyID, err
}

// The first source that the user has named counts, and no other one is asked.
func TestSourcesOfCredentials(t *testing.T) {
	for _, name := range environment() {
		if strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	if key, err := keys(t, objstore.Settings{}); err == nil || tea.AsError(err).Type != tea.PermissionDenied || !strings.Contains(err.Error(), "metadata_server") {
		t.Errorf("without a source: %q, %v", key, err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"AccessKeyId": "container", "SecretAccessKey": "s", "Token": "t", "Expiration": "2999-01-01T00:00:00Z", "Code": "Success"}`))
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL)
	if key, err := keys(t, objstore.Settings{}); key != "container" {
		t.Errorf("the container: %q, %v", key, err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := "[default]\naws_access_key_id = file\naws_secret_access_key = s\n[other]\naws_access_key_id = profile\naws_secret_access_key = s\n"
	if err := os.WriteFile(filepath.Join(home, ".aws", "credentials"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := keys(t, objstore.Settings{}); key != "file" {
		t.Errorf("the file: %q, %v", key, err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "variable")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	if key, err := keys(t, objstore.Settings{}); key != "variable" {
		t.Errorf("the variables: %q, %v", key, err)
	}
	if key, err := keys(t, objstore.Settings{Profile: "other"}); key != "profile" {
		t.Errorf("the profile: %q, %v", key, err)
	}
	if key, err := keys(t, objstore.Settings{AccessKeyID: "setting", SecretAccessKey: "s"}); key != "setting" {
		t.Errorf("the settings: %q, %v", key, err)
	}
}

package gcs

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/objtest"
)

// services are the storage, the service of tokens and the metadata server, as their
// documentation describes them.
type services struct {
	key      *rsa.PublicKey // of the service account
	refusal  string         // the answer of the service of tokens, with the status 400
	status   int            // another status of it
	silent   bool
	reached  func()        // called while it is silent
	end      chan struct{} // when it stops being silent
	storage  int           // the status of the storage; 0 = it stores
	asked    atomic.Int64
	metadata atomic.Int64
}

const storageHost = "storage.googleapis.com"

func (g *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.Host {
	case "oauth2.example":
		g.asked.Add(1)
		g.token(w, r)
	case storageHost:
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer granted" || len(body) == 0 {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error": {"code": 401, "message": "Invalid Credentials", "errors": [{"reason": "authError"}]}}`)
			return
		}
		if g.storage != 0 {
			w.WriteHeader(g.storage)
			_, _ = io.WriteString(w, `{"error": {"code": 401, "message": "Invalid Credentials", "errors": [{"reason": "authError"}]}}`)
			return
		}
		_, _ = io.WriteString(w, `{"name": "a", "generation": "1", "size": "7"}`)
	default: // the metadata server, by its name or its address
		g.metadata.Add(1)
		w.Header().Set("Metadata-Flavor", "Google")
		if strings.HasSuffix(r.URL.Path, "/token") {
			_, _ = io.WriteString(w, `{"access_token": "granted", "expires_in": 3600, "token_type": "Bearer"}`)
		}
	}
}

// token checks the signed assertion of a service account.
func (g *services) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	if g.silent {
		if g.reached != nil {
			g.reached()
		}
		select {
		case <-r.Context().Done():
		case <-g.end:
		}
		return
	}
	parts := strings.Split(r.PostForm.Get("assertion"), ".")
	refuse := func(text string) {
		w.WriteHeader(cmp.Or(g.status, http.StatusBadRequest))
		_, _ = io.WriteString(w, text)
	}
	if g.refusal != "" || len(parts) != 3 {
		refuse(g.refusal)
		return
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(g.key, crypto.SHA256, digest[:], signature) != nil {
		refuse(`{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}`)
		return
	}
	_, _ = io.WriteString(w, `{"access_token": "granted", "expires_in": 3600, "token_type": "Bearer"}`)
}

// serviceAccount returns a key file as Google makes it.
func serviceAccount(t *testing.T, key *rsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "k", "client_id": "1", "client_email": "agent@p.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": "https://oauth2.example/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The credentials of a user and of another cloud.
const (
	login      = `{"type": "authorized_user", "client_id": "c", "client_secret": "very-secret", %s"token_uri": "https://oauth2.example/token"}`
	federation = `{"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "https://oauth2.example/token", "credential_source": {"file": %q}}`
)

// Service accounts, from the settings and a file, with keys that Google accepts and
// does not.
func TestServiceAccounts(t *testing.T) {
	for _, name := range environment() {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("APPDATA", home)
	key := newKey(t)
	own := serviceAccount(t, key)
	file := filepath.Join(home, "key.json")
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		settings objstore.Settings
		file     string
		service  *services
		kind     tea.ErrorType
		reason   string
	}{
		"settings":            {settings: objstore.Settings{Credentials: own}},
		"file":                {file: file},
		"another key":         {settings: objstore.Settings{Credentials: serviceAccount(t, newKey(t))}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"clock":               {settings: objstore.Settings{Credentials: own}, service: &services{refusal: `{"error": "invalid_grant", "error_description": "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."}`}, kind: tea.PermissionDenied, reason: objstore.ReasonClock},
		"removed account":     {settings: objstore.Settings{Credentials: own}, service: &services{refusal: `{"error": "invalid_grant", "error_description": "Invalid grant: account not found"}`}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"no answer":           {settings: objstore.Settings{Credentials: own, StallSeconds: 0.5}, service: &services{silent: true}, kind: tea.ConnectionError},
		"service away":        {settings: objstore.Settings{Credentials: own}, service: &services{refusal: `{"error": "internal_failure"}`, status: http.StatusServiceUnavailable}, kind: tea.ConnectionError},
		"revoked login":       {settings: objstore.Settings{Credentials: fmt.Sprintf(login, `"refresh_token": "r", `)}, service: &services{refusal: `{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}`}, kind: tea.PermissionDenied, reason: objstore.ReasonExpired},
		"incomplete login":    {settings: objstore.Settings{Credentials: fmt.Sprintf(login, "")}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"federation":          {settings: objstore.Settings{Credentials: fmt.Sprintf(federation, file)}, service: &services{refusal: `{"error": "invalid_grant", "error_description": "very-secret"}`}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"federation, no file": {settings: objstore.Settings{Credentials: fmt.Sprintf(federation, file+"x")}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"refused token":       {settings: objstore.Settings{Credentials: own}, service: &services{storage: http.StatusUnauthorized}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"no credentials":      {kind: tea.PermissionDenied},
		"missing file":        {file: file + "x", kind: tea.PermissionDenied},
		"not JSON":            {settings: objstore.Settings{Credentials: "very-secret"}, kind: tea.PermissionDenied},
		"damaged key":         {settings: objstore.Settings{Credentials: strings.Replace(own, "MII", "XXX", 1)}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"of another service":  {settings: objstore.Settings{Credentials: `{"type": "unknown", "private_key": "very-secret"}`}, kind: tea.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", c.file)
			service := cmp.Or(c.service, &services{})
			service.key = &key.PublicKey
			c.settings.Attempts = 2
			b, err := objstore.Open(t.Context(), "gs://bucket", c.settings, objtest.Rerouted(t, Scheme(), service))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			_, err = b.Put(t.Context(), "a", strings.NewReader("content"), objstore.PutOptions{})
			if n := service.metadata.Load(); n != 0 {
				t.Errorf("the metadata server was asked %d times", n)
			}
			if c.kind == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			objtest.Refused(t, err, c.kind, c.reason)
			for _, secret := range []string{"PRIVATE", "very-secret", "assertion"} {
				if strings.Contains(fmt.Sprint(err), secret) {
					t.Errorf("the error shows a secret: %v", err)
				}
			}
		})
	}
}

// A token is fetched once for many requests.
func TestTokenIsReused(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	service := &services{key: &key.PublicKey}
	b, err := objstore.Open(t.Context(), "gs://bucket", objstore.Settings{Credentials: serviceAccount(t, key)}, objtest.Rerouted(t, Scheme(), service))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 5 {
		if _, err := b.Put(t.Context(), "a", strings.NewReader("content"), objstore.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := service.asked.Load(); n != 1 {
		t.Errorf("%d tokens were fetched, want 1", n)
	}
}

// A call ends with its context while the service of tokens is silent.
func TestContextEndsTheWaitForAToken(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	ctx, cancel := context.WithCancel(t.Context())
	service := &services{key: &key.PublicKey, silent: true, reached: cancel, end: make(chan struct{})}
	b, err := objstore.Open(t.Context(), "gs://bucket", objstore.Settings{Credentials: serviceAccount(t, key)}, objtest.Rerouted(t, Scheme(), service))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	defer close(service.end)
	if _, err := b.Put(ctx, "a", strings.NewReader("content"), objstore.PutOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context was cancelled", err)
	}
}

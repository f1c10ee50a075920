package gcs

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/storage/v1"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/googleauth"
)

// auth adds a token to requests. It searches for credentials on the first one.
type auth struct {
	settings  objstore.Settings
	http      *http.Client
	anonymous bool

	once   sync.Once
	found  *google.Credentials
	tokens *googleauth.Tokens
	err    error
}

func (a *auth) credentials() (*google.Credentials, error) {
	a.once.Do(func() { a.tokens, a.err = googleauth.New(a.http, a.find) })
	return a.found, a.err
}

// find searches for credentials.
func (a *auth) find(ctx context.Context) (oauth2.TokenSource, error) {
	var err error
	if a.settings.Credentials != "" {
		a.found, err = google.CredentialsFromJSON(ctx, []byte(a.settings.Credentials), storage.DevstorageReadWriteScope) //nolint:staticcheck // the settings are trusted
	} else if !a.settings.MetadataServer && !credentialsFile() {
		err = errors.New("no file")
	} else {
		a.found, err = google.FindDefaultCredentials(ctx, storage.DevstorageReadWriteScope)
	}
	if err != nil {
		// The error may quote the credentials.
		return nil, tea.Errorf(tea.PermissionDenied, "no valid credentials for Google Cloud Storage were found; set credentials to the JSON of a service account, GOOGLE_APPLICATION_CREDENTIALS to its file, or metadata_server: true on a machine of Google Cloud")
	}
	if _, _, err := googleauth.ServiceKey(a.found.JSON); err != nil && !errors.Is(err, googleauth.ErrNoKey) {
		return nil, err
	}
	return a.found.TokenSource, nil
}

// credentialsFile reports whether a file with credentials exists. Without one the
// library would call the metadata server.
func credentialsFile() bool {
	if os.Getenv("GOOGLE_APPLICATION_CREDENTIALS") != "" {
		return true
	}
	dir, err := os.UserHomeDir()
	if dir = filepath.Join(dir, ".config"); runtime.GOOS == "windows" {
		dir, err = os.Getenv("APPDATA"), nil
	}
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, "gcloud", "application_default_credentials.json"))
	return err == nil
}

func (a *auth) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.URL.Query().Get("alt") == "media" {
		// Without it the service decompresses stored objects; range, size and checksum
		// refer to the stored form. The client does not set it.
		r.Header.Set("Accept-Encoding", "gzip")
	}
	if a.anonymous {
		return a.http.Transport.RoundTrip(r)
	}
	fail := func(err error) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	if _, err := a.credentials(); err != nil {
		return fail(err)
	}
	token, err := a.tokens.Token(r.Context())
	if err != nil {
		return fail(err)
	}
	token.SetAuthHeader(r)
	return a.http.Transport.RoundTrip(r)
}

// Sign returns an address with a signature of version 4, made with the key of a service
// account.
func (d *driver) Sign(_ context.Context, method, key string, expires time.Duration) (string, error) {
	account, signer, err := d.auth.key()
	if err != nil {
		return "", err
	}
	at := time.Now().UTC()
	stamp, scope := at.Format("20060102T150405Z"), at.Format("20060102")+"/auto/storage/goog4_request"
	u, err := url.Parse(d.base)
	if err != nil {
		return "", err
	}
	u.Path = "/" + d.bucket + "/" + key
	u.RawPath = "/" + d.bucket + "/" + escape(key)
	query := url.Values{
		"X-Goog-Algorithm": {"GOOG4-RSA-SHA256"}, "X-Goog-Credential": {account + "/" + scope}, "X-Goog-Date": {stamp},
		"X-Goog-Expires": {fmt.Sprint(int64(expires / time.Second))}, "X-Goog-SignedHeaders": {"host"},
	}
	canonical := strings.ReplaceAll(query.Encode(), "+", "%20")
	request := strings.Join([]string{method, u.EscapedPath(), canonical, "host:" + u.Host, "", "host", "UNSIGNED-PAYLOAD"}, "\n")
	digest := sha256.Sum256([]byte(request))
	text := sha256.Sum256([]byte(strings.Join([]string{"GOOG4-RSA-SHA256", stamp, scope, hex.EncodeToString(digest[:])}, "\n")))
	signature, err := signer(text[:])
	if err != nil {
		return "", err
	}
	u.RawQuery = canonical + "&X-Goog-Signature=" + hex.EncodeToString(signature)
	return u.String(), nil
}

// escape escapes all characters except letters, digits and -._~/, as version 4 requires.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(key), "+", "%20"), "%2F", "/")
}

// key returns the name of the service account and its signing function.
func (a *auth) key() (account string, sign func(digest []byte) ([]byte, error), err error) {
	if a.anonymous {
		return "anonymous", func([]byte) ([]byte, error) { return nil, nil }, nil // an emulator does not check signatures
	}
	found, err := a.credentials()
	if err != nil {
		return "", nil, err
	}
	account, private, err := googleauth.ServiceKey(found.JSON)
	if errors.Is(err, googleauth.ErrNoKey) {
		return "", nil, tea.Errorf(tea.PermissionDenied, "signed addresses need the key of a service account; set credentials to its JSON")
	}
	if err != nil {
		return "", nil, err
	}
	return account, func(digest []byte) ([]byte, error) {
		return rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, digest)
	}, nil
}

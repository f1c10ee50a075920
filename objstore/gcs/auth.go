package gcs

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
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
)

// auth adds a token to requests. It looks for credentials at the first one.
type auth struct {
	settings  objstore.Settings
	http      *http.Client
	anonymous bool

	once   sync.Once
	found  *google.Credentials
	tokens oauth2.TokenSource
	err    error
}

func (a *auth) credentials() (*google.Credentials, error) {
	a.once.Do(func() {
		ctx := context.WithValue(context.Background(), oauth2.HTTPClient, a.http)
		if a.settings.Credentials != "" {
			a.found, a.err = google.CredentialsFromJSON(ctx, []byte(a.settings.Credentials), storage.DevstorageReadWriteScope) //nolint:staticcheck // the settings are trusted
		} else if !a.settings.MetadataServer && !credentialsFile() {
			a.err = errors.New("no file")
		} else {
			a.found, a.err = google.FindDefaultCredentials(ctx, storage.DevstorageReadWriteScope)
		}
		if a.err != nil {
			// The error can quote the credentials.
			a.err = tea.Errorf(tea.PermissionDenied, "no valid credentials for Google Cloud Storage were found; set credentials to the JSON of a service account, GOOGLE_APPLICATION_CREDENTIALS to its file, or metadata_server: true on a machine of Google Cloud")
			return
		}
		if _, _, a.err = serviceKey(a.found.JSON); errors.Is(a.err, errNoKey) {
			a.err = nil // they are of another kind
		}
		a.tokens = oauth2.ReuseTokenSource(nil, a.found.TokenSource)
	})
	return a.found, a.err
}

// credentialsFile reports whether there is a file of credentials. Without one the
// library would ask the metadata server.
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
	token, err := a.tokens.Token()
	if err != nil {
		return fail(tokenError(err))
	}
	r = r.Clone(r.Context())
	token.SetAuthHeader(r)
	return a.http.Transport.RoundTrip(r)
}

// tokenError says why there is no token, without what was sent for one.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) { // the key was checked
		out := tea.Errorf(tea.ConnectionError, "the token for Google Cloud Storage cannot be fetched: the service for it cannot be reached")
		out.Retryable = true
		return out
	}
	said := struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}{refused.ErrorCode, refused.ErrorDescription}
	if said.Code == "" { // the answer to the assertion of a service account
		_ = json.Unmarshal(refused.Body, &said) // or it has no code
	}
	if strings.Contains(said.Description, "timeframe") || strings.Contains(said.Description, "iat") {
		out := tea.Errorf(tea.PermissionDenied, "Google Cloud does not accept the credentials: the clock of this device differs from that of the service; set the clock")
		out.Details = map[string]any{"reason": objstore.ReasonClock, "code": said.Code}
		return out
	}
	out := tea.Errorf(tea.PermissionDenied, "Google Cloud does not accept the credentials (%s); create another key of the service account", cmp.Or(said.Code, refused.Response.Status))
	out.Details = map[string]any{"reason": objstore.ReasonCredentials, "code": said.Code}
	return out
}

// Sign returns an address with a signature of version 4, which is made here with
// the key of a service account.
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

// escape is the escaping of version 4: all but letters, digits and -._~/.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(key), "+", "%20"), "%2F", "/")
}

// key returns the name of the service account and its signature.
func (a *auth) key() (account string, sign func(digest []byte) ([]byte, error), err error) {
	if a.anonymous {
		return "anonymous", func([]byte) ([]byte, error) { return nil, nil }, nil // an emulator does not check it
	}
	found, err := a.credentials()
	if err != nil {
		return "", nil, err
	}
	account, private, err := serviceKey(found.JSON)
	if errors.Is(err, errNoKey) {
		return "", nil, tea.Errorf(tea.PermissionDenied, "signed addresses need the key of a service account; set credentials to its JSON")
	}
	if err != nil {
		return "", nil, err
	}
	return account, func(digest []byte) ([]byte, error) {
		return rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, digest)
	}, nil
}

// errNoKey reports credentials without a key.
var errNoKey = errors.New("the credentials have no key")

// serviceKey returns the name and the key of a service account.
func serviceKey(text []byte) (account string, key *rsa.PrivateKey, err error) {
	var service struct {
		ClientEmail string `json:"client_email"`
		PrivateKey  string `json:"private_key"`
	}
	if json.Unmarshal(text, &service) != nil || service.PrivateKey == "" {
		return "", nil, errNoKey
	}
	var parsed any
	if block, _ := pem.Decode([]byte(service.PrivateKey)); block != nil {
		if parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
			parsed, _ = x509.ParsePKCS1PrivateKey(block.Bytes) // or it is not valid
		}
	}
	if key, ok := parsed.(*rsa.PrivateKey); ok && key != nil {
		return service.ClientEmail, key, nil
	}
	out := tea.Errorf(tea.PermissionDenied, "the private key of the service account is not a valid RSA key; create another key of the account")
	out.Details = map[string]any{"reason": objstore.ReasonCredentials}
	return "", nil, out
}

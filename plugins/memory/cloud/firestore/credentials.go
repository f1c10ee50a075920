package firestore

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	tea "github.com/the-edge-agent/tea/sdk"
)

// scope is what a token allows.
const scope = "https://www.googleapis.com/auth/datastore"

// emulatorToken is the token of an emulator, for which security rules do not
// apply.
func emulatorToken(context.Context) (string, error) { return "owner", nil }

// credentials looks for an account at the first request: settings.memory.token, which
// is the JSON of a key or a token, then GOOGLE_APPLICATION_CREDENTIALS, then the
// metadata server if the options name it.
type credentials struct {
	given    string
	metadata bool
	http     *http.Client // for requests of tokens

	once   sync.Once
	tokens oauth2.TokenSource
	err    error
}

func (c *credentials) token(context.Context) (string, error) {
	c.once.Do(func() { c.tokens, c.err = c.source() })
	if c.err != nil {
		return "", c.err
	}
	token, err := c.tokens.Token()
	if err != nil {
		return "", tokenError(err)
	}
	return token.AccessToken, nil
}

func (c *credentials) source() (oauth2.TokenSource, error) {
	// The context is that of later requests too.
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, c.http)
	key, origin := []byte(c.given), "settings.memory.token"
	if c.given == "" {
		file := os.Getenv(credentialsFile)
		if file == "" {
			if c.metadata {
				return oauth2.ReuseTokenSource(nil, google.ComputeTokenSource("", scope)), nil
			}
			return nil, tea.Errorf(tea.PermissionDenied, "no credentials for Firestore were found; set settings.memory.token to the JSON of a service account's key, %s to its file, or settings.memory.options.metadata_server on Google Cloud", credentialsFile)
		}
		var err error
		if key, err = os.ReadFile(file); err != nil {
			return nil, tea.Errorf(tea.PermissionDenied, "read the file of %s: %w", credentialsFile, err)
		}
		origin = "the file of " + credentialsFile
	}
	if !strings.HasPrefix(strings.TrimSpace(string(key)), "{") {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: strings.TrimSpace(string(key))}), nil
	}
	found, err := google.CredentialsFromJSON(ctx, key, scope) //nolint:staticcheck // the settings are trusted
	if err != nil {
		// The error can quote the credentials.
		return nil, tea.Errorf(tea.PermissionDenied, "%s is not the JSON of a Google account's key", origin)
	}
	if !validKey(key) {
		return nil, tea.Errorf(tea.PermissionDenied, "the private key of %s is not valid; create another key of the service account", origin)
	}
	return oauth2.ReuseTokenSource(nil, found.TokenSource), nil
}

// validKey reports whether the private key of an account, if it has one, is valid.
func validKey(account []byte) bool {
	var service struct {
		PrivateKey string `json:"private_key"`
	}
	if json.Unmarshal(account, &service) != nil || service.PrivateKey == "" {
		return true
	}
	block, _ := pem.Decode([]byte(service.PrivateKey))
	if block == nil {
		return false
	}
	_, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		_, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	return err == nil
}

// tokenError says why there is no token, without what was sent for one.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) { // the key was checked
		e := tea.Errorf(tea.ConnectionError, "Google's service for tokens cannot be reached")
		e.Retryable = true
		return e
	}
	said := struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}{refused.ErrorCode, refused.ErrorDescription}
	if said.Code == "" { // the answer to the assertion of a service account
		_ = json.Unmarshal(refused.Body, &said) // or it has no code
	}
	if strings.Contains(said.Description, "timeframe") || strings.Contains(said.Description, "iat") {
		return tea.Errorf(tea.PermissionDenied, "Google does not accept the credentials: the clock of this device differs from that of the service; set the clock")
	}
	return tea.Errorf(tea.PermissionDenied, "Google does not accept the credentials (%s); create another key of the service account", cmp.Or(said.Code, refused.Response.Status))
}

package firestore

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore/googleauth"
)

// scope is the scope of tokens.
const scope = "https://www.googleapis.com/auth/datastore"

// emulatorToken returns the token with which an emulator ignores security rules.
func emulatorToken(context.Context) (string, error) { return "owner", nil }

// credentials selects an account at the first request: settings.memory.token, which is the JSON of a key or a token,
// then GOOGLE_APPLICATION_CREDENTIALS, then the metadata server if the options name it.
type credentials struct {
	given    string
	metadata bool
	http     *http.Client // for token requests

	once   sync.Once
	tokens *googleauth.Tokens
	err    error
}

func (c *credentials) token(ctx context.Context) (string, error) {
	c.once.Do(func() { c.tokens, c.err = googleauth.New(c.http, c.source) })
	if c.err != nil {
		return "", c.err
	}
	token, err := c.tokens.Token(ctx)
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
}

func (c *credentials) source(ctx context.Context) (oauth2.TokenSource, error) {
	key, origin := []byte(c.given), "settings.memory.token"
	if c.given == "" {
		file := os.Getenv(credentialsFile)
		if file == "" {
			if c.metadata {
				return google.ComputeTokenSource("", scope), nil
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
	if _, _, err := googleauth.ServiceKey(key); err != nil && !errors.Is(err, googleauth.ErrNoKey) {
		return nil, err
	}
	return found.TokenSource, nil
}

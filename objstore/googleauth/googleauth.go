// Package googleauth fetches tokens for Google's services. Start with [New].
package googleauth

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
)

// Tokens is a source of tokens. A token is fetched once for many requests. It is
// safe for concurrent use.
type Tokens struct{ tokens oauth2.TokenSource }

// New returns the tokens for the credentials that find returns. The context of find
// has the HTTP client for all requests of tokens, whose timeout bounds them.
func New(client *http.Client, find func(ctx context.Context) (oauth2.TokenSource, error)) (*Tokens, error) {
	f := &fetching{}
	watched := *client
	watched.Transport = &watch{next: cmp.Or[http.RoundTripper](client.Transport, http.DefaultTransport), f: f}
	var err error
	if f.tokens, err = find(context.WithValue(context.Background(), oauth2.HTTPClient, &watched)); err != nil {
		return nil, err
	}
	return &Tokens{oauth2.ReuseTokenSource(nil, f)}, nil
}

// Token returns a token. Refused, expired or incomplete credentials are a
// permission_denied error, and a service that does not answer is a connection_error. If
// the context ends, the token is still fetched for later calls.
func (t *Tokens) Token(ctx context.Context) (*oauth2.Token, error) {
	type result struct {
		token *oauth2.Token
		err   error
	}
	done := make(chan result, 1)
	go func() {
		token, err := t.tokens.Token()
		done <- result{token, err}
	}()
	select {
	case r := <-done:
		return r.token, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetching fetches a token, one at a time.
type fetching struct {
	tokens oauth2.TokenSource
	// status and failed describe the last request; zero before the first one.
	status int
	failed error
}

// watch records the outcome of requests, because most errors of the library are untyped.
type watch struct {
	next http.RoundTripper
	f    *fetching
}

func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if w.f.status, w.f.failed = 0, err; err == nil {
		w.f.status = resp.StatusCode
	}
	return resp, err
}

// Token fetches a token.
func (f *fetching) Token() (*oauth2.Token, error) {
	f.status, f.failed = 0, nil
	token, err := f.tokens.Token()
	if err != nil {
		return nil, f.typed(err)
	}
	return token, nil
}

// typed explains why there is no token, without the content of the request.
func (f *fetching) typed(err error) error {
	var own *tea.Error
	if errors.As(f.failed, &own) {
		return own
	}
	var said answer
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		said = answer{refused.ErrorCode, refused.ErrorDescription}
		if said.Code == "" { // the answer to the assertion of a service account
			_ = json.Unmarshal(refused.Body, &said) // it may have no code
		}
	}
	switch {
	case f.unanswered(err):
		e := tea.Errorf(tea.ConnectionError, "the token for Google's services cannot be fetched: the service for it cannot be reached")
		e.Retryable = true
		return e
	case strings.Contains(said.Description, "timeframe"), strings.Contains(said.Description, "iat"):
		return denied(objstore.ReasonClock, said.Code, "Google does not accept the credentials: the clock of this device differs from the service's; set the clock")
	case strings.Contains(said.Description, "expired"):
		return denied(objstore.ReasonExpired, said.Code, "the credentials for Google's services have expired; get new ones")
	case f.status == 0: // for example without a refresh token, or a file that is missing
		return denied(objstore.ReasonCredentials, "", "the credentials for Google's services have expired or are not complete; get new ones")
	}
	return denied(objstore.ReasonCredentials, said.Code, "Google does not accept the credentials (%s); create another key of the service account", cmp.Or(said.Code, http.StatusText(f.status)))
}

// answer is the response of a token service that refuses a token.
type answer struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

// unanswered reports whether no service has decided on the credentials.
func (f *fetching) unanswered(err error) bool {
	if f.status == 0 && f.failed == nil { // the metadata server has a separate client
		return errors.As(err, new(*url.Error))
	}
	switch {
	case f.status >= http.StatusInternalServerError, f.status == http.StatusTooManyRequests, f.status == http.StatusRequestTimeout:
		return true
	case f.status >= http.StatusBadRequest:
		return false
	}
	return !errors.As(err, new(*oauth2.RetrieveError)) // nor a response that can be decoded
}

func denied(reason, code, message string, args ...any) error {
	e := tea.Errorf(tea.PermissionDenied, message, args...)
	e.Details = map[string]any{"reason": reason}
	if code != "" {
		e.Details["code"] = code
	}
	return e
}

// ErrNoKey reports credentials without a key.
var ErrNoKey = errors.New("the credentials have no key")

// ServiceKey returns the name and the key of a service account from its JSON. The error
// is ErrNoKey for other kinds of credentials, and a permission_denied error for an
// invalid key.
func ServiceKey(text []byte) (account string, key *rsa.PrivateKey, err error) {
	var service struct {
		ClientEmail string `json:"client_email"`
		PrivateKey  string `json:"private_key"`
	}
	if json.Unmarshal(text, &service) != nil || service.PrivateKey == "" {
		return "", nil, ErrNoKey
	}
	var parsed any
	if block, _ := pem.Decode([]byte(service.PrivateKey)); block != nil {
		if parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
			parsed, _ = x509.ParsePKCS1PrivateKey(block.Bytes) // nil if it is not valid
		}
	}
	if key, ok := parsed.(*rsa.PrivateKey); ok && key != nil {
		return service.ClientEmail, key, nil
	}
	return "", nil, denied(objstore.ReasonCredentials, "", "the private key of the service account is not a valid RSA key; create another key of the account")
}

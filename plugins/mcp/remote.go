package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// network makes the HTTP requests of one session. It sends credentials only to the host
// of the server. A nil network has no refusal.
type network struct {
	base   *http.Transport
	config Server
	host   string
	// arrived is called with each message of the server.
	arrived func(message []byte)

	mu        sync.Mutex
	refused   *refused
	lastError string // why the last request did not get a response
}

// refused is a response that denies access.
type refused struct {
	kind tea.ErrorType
	text string
}

const (
	dialTimeout = 10 * time.Second
	// maxRedirects bounds redirects within the host of the server.
	maxRedirects = 5
)

// remote returns the transport for a server at an address.
func (s *server) remote(se *session) (mcp.Transport, error) {
	address, err := url.Parse(s.config.URL)
	if err != nil {
		return nil, s.errorf(tea.ValidationError, "url: %w", err)
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	base.MaxResponseHeaderBytes = 1 << 20
	n := &network{base: base, config: s.config, host: address.Host, arrived: se.calls.arrived}
	se.network = n
	if address.Scheme == "http" && !isLoopback(address.Hostname()) && (s.config.Token != "" || s.config.Headers != nil || s.config.OAuth != nil) {
		slog.Warn("credentials are sent without encryption: the address of the MCP server " + s.name + " begins with http://")
	}
	t := &mcp.StreamableClientTransport{
		Endpoint: s.config.URL, MaxRetries: 2, MaxEventSize: maxMessage,
		HTTPClient: &http.Client{Transport: n, CheckRedirect: n.checkRedirect},
	}
	if o := s.config.OAuth; o != nil {
		t.OAuthHandler, err = extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
			Credentials: &oauthex.ClientCredentials{ClientID: o.ClientID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}, Issuer: o.Issuer},
			HTTPClient:  &http.Client{Transport: authorization{n}, CheckRedirect: noRedirect, Timeout: s.config.startTimeout()},
		})
		if err != nil {
			return nil, s.errorf(tea.ValidationError, "oauth: %w", err)
		}
	}
	return t, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var errElsewhere = errors.New("the server redirects to another host, which would get the credentials")

// checkRedirect allows redirects within the host.
func (n *network) checkRedirect(req *http.Request, via []*http.Request) error {
	if req.URL.Host != n.host || req.URL.Scheme != via[0].URL.Scheme {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.lastError = errElsewhere.Error()
		return errElsewhere
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// RoundTrip adds the credentials and records a response that denies access.
func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host == n.host {
		req = req.Clone(req.Context())
		for name, v := range n.config.Headers {
			req.Header.Set(name, v)
		}
		if n.config.Token != "" {
			req.Header.Set("Authorization", "Bearer "+n.config.Token)
		}
	}
	resp, err := bounded{httpapi.Once{Transport: n.base}}.RoundTrip(req)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused, n.lastError = nil, ""
	if err != nil {
		n.lastError = err.Error()
		return nil, err
	}
	if expired, ok := req.Context().Value(expiredKey{}).(*atomic.Bool); ok && lostSession(req, resp) {
		expired.Store(true)
	}
	exactAnswer(resp, n.arrived)
	if resp.StatusCode >= http.StatusBadRequest {
		n.lastError = "the server answered " + resp.Status
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		n.refused = &refused{tea.PermissionDenied, "401 Unauthorized; check token, headers or oauth of the server"}
	case http.StatusForbidden:
		n.refused = &refused{tea.PermissionDenied, "403 Forbidden; the credentials of the server do not allow it"}
	case http.StatusTooManyRequests:
		n.refused = &refused{tea.RateLimited, "429 Too Many Requests"}
	}
	return resp, nil
}

// expiredKey is the context key of an [atomic.Bool] that is set when the server refuses
// the request because the session has expired.
type expiredKey struct{}

// lostSession reports whether a server has refused a request because it does not know
// the session. The protocol defines status 404 for this, but servers also send 410 and
// 400. A 400 may also answer an invalid request; then the response has the request's id.
func lostSession(req *http.Request, resp *http.Response) bool {
	status := resp.StatusCode
	if status != http.StatusNotFound && status != http.StatusGone && status != http.StatusBadRequest || req.Header.Get("Mcp-Session-Id") == "" {
		return false
	}
	id := begins(req)
	if id == nil {
		return false
	}
	const maxRefusal = 64 << 10
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // the rest fails again below
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
	var answer struct {
		ID    any `json:"id"`
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.ID != id {
		return true
	}
	return status != http.StatusBadRequest && answer.Error.Code != jsonrpc.CodeMethodNotFound
}

// begins returns the id of a request that begins a call; nil for other requests. Later
// requests of a call answer questions of the server or continue a stream.
func begins(req *http.Request) (id any) {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	var message struct {
		ID     any    `json:"id"`
		Method string `json:"method"`
	}
	if json.NewDecoder(body).Decode(&message) != nil || message.Method == "" {
		return nil
	}
	return message.ID
}

// refusal returns the last response if it denied access.
func (n *network) refusal() *refused {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused
}

// problem returns why the last request did not get a response; "" if it did.
func (n *network) problem() string {
	if n == nil {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lastError
}

func (n *network) close() { n.base.CloseIdleConnections() }

// authorization makes the requests to an authorization server, without the other
// credentials. It sends the client secret only to the host of the MCP server, unless the
// settings name the issuer: a server could name any other host.
type authorization struct{ n *network }

func (a authorization) RoundTrip(req *http.Request) (*http.Response, error) {
	n := a.n
	if server, err := url.Parse(n.config.URL); req.Method == http.MethodPost && n.config.OAuth.Issuer == "" && (err != nil || req.URL.Host != n.host || req.URL.Scheme != server.Scheme) {
		err := fmt.Errorf("the client secret is not sent to %s://%s, which the server names; if it is the authorization server, set oauth.issuer", req.URL.Scheme, req.URL.Host)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.refused = &refused{tea.PermissionDenied, err.Error()}
		return nil, err
	}
	return bounded{httpapi.Once{Transport: n.base}}.RoundTrip(req)
}

// noRedirect prevents redirects, which would forward the client secret.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// bounded limits the size of responses that are not streams; each event of a stream is
// limited separately.
type bounded struct{ base http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.base.RoundTrip(req)
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = &limitedBody{resp.Body, maxMessage}
	}
	return resp, err
}

// limitedBody fails when a limit of bytes is exceeded.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is larger than %d MiB", maxMessage>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

package transport

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Server is where a provider's requests go and how.
type Server struct {
	Client *Client
	// Base is the address under which the paths of the protocol lie. Its
	// query, if it has one, is sent with every request.
	Base   string
	Header http.Header
	// Secrets are kept out of errors.
	Secrets    []string
	MaxRetries int
	// TokenTimeout is how long a stream may pause between two tokens.
	TokenTimeout time.Duration
	OnRetry      func(Retry)
}

// Post sends body as JSON to a path of the server; see [Client.Post].
func (s *Server) Post(ctx context.Context, path string, body map[string]any, consume func(Reply) error) error {
	address, err := join(s.Base, path)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return tea.Errorf(tea.ValidationError, "encode the request: %w", err)
	}
	return s.Client.Post(ctx, Call{
		URL: address, Header: s.Header, Body: raw,
		MaxRetries: s.MaxRetries, Secrets: s.Secrets, OnRetry: s.OnRetry,
	}, consume)
}

// Missing explains a not_found error by the path of the address, where hint
// says what is wrong with it; other errors stay as they are.
func (s *Server) Missing(err error, hint func(path string) string) error {
	u, parseErr := url.Parse(s.Base)
	if e := tea.AsError(err); e != nil && e.Type == tea.NotFound && parseErr == nil {
		if text := hint(strings.Trim(u.Path, "/")); text != "" {
			explained := *e
			explained.Message += "; " + text
			return &explained
		}
	}
	return err
}

// join appends an escaped path to the address of a server, keeping its query.
func join(base, path string) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "", tea.Errorf(tea.ValidationError, "api_base is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", tea.Errorf(tea.ValidationError, "api_base must begin with http:// or https:// and name a host")
	}
	return u.JoinPath(path).String(), nil
}

package libsql

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Name is the value of settings.memory.engine.
const Name = "libsql"

// Option adds the backend to the memory's bundle.
func Option() memory.Option { return memory.WithBackend(Backend()) }

// Backend returns the backend.
func Backend() store.Backend {
	return store.Backend{Name: Name, Open: func(_ context.Context, c store.Config) (*store.Stores, error) {
		return open(c, func(h *http.Client) *http.Client { return h })
	}}
}

// open opens the stores. Tests change the HTTP client.
func open(c store.Config, change func(*http.Client) *http.Client) (*store.Stores, error) {
	base, token, err := address(c)
	if err != nil {
		return nil, err
	}
	h, err := remotesqlite.NewHTTP(c)
	if err != nil {
		return nil, err
	}
	return remotesqlite.Open(Name, newClient(base, token, c.Timeout, change(h)), c)
}

// address returns the server's HTTP address and the token. The URL is the address of a server (https) or of a database
// as shown by Turso (libsql).
func address(c store.Config) (base, token string, err error) {
	u, err := store.ParseURL("memory.url", c.URL, "libsql", "https", "http")
	if err != nil {
		return "", "", err
	}
	if u.Host == "" || u.Fragment != "" {
		return "", "", tea.Errorf(tea.ValidationError, "settings.memory.url must be libsql://HOST or https://HOST, with a path if the server has one")
	}
	query := u.Query()
	token = c.Token
	if token == "" {
		token = query.Get("authToken")
	}
	plain := u.Scheme == "http" || query.Get("tls") == "0"
	for name := range query {
		if name != "authToken" && name != "tls" {
			return "", "", tea.Errorf(tea.ValidationError, "settings.memory.url has the unknown parameter %q; use authToken and tls", name)
		}
	}
	if plain && !store.IsLoopback(u.Hostname()) {
		return "", "", store.NeedsTLS("memory.url", u.Hostname(), "begin the URL with libsql:// or https://, without tls=0")
	}
	clean := url.URL{Scheme: "https", Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	if plain {
		clean.Scheme = "http"
	}
	if u.User != nil {
		return "", "", tea.Errorf(tea.ValidationError, "settings.memory.url contains a user; set settings.memory.token")
	}
	return clean.String(), token, nil
}

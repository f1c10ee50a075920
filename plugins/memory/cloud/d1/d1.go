package d1

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Name is the value of settings.memory.engine.
const Name = "d1"

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
	base, err := address(c)
	if err != nil {
		return nil, err
	}
	h, err := remotesqlite.NewHTTP(c)
	if err != nil {
		return nil, err
	}
	return remotesqlite.Open(Name, newClient(base, c.Token, c.Timeout, change(h)), c)
}

// api is the base URL of Cloudflare's accounts.
const api = "https://api.cloudflare.com/client/v4/accounts/"

// address returns the address of a database. The URL is d1://ACCOUNT/DATABASE, or an address that ends with
// /d1/database/ID.
func address(c store.Config) (string, error) {
	u, err := store.ParseURL("memory.url", c.URL, "d1", "https", "http")
	if err != nil {
		return "", err
	}
	id := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", tea.Errorf(tea.ValidationError, "settings.memory.url must not have a user, a query or a fragment; set settings.memory.token")
	}
	if u.Scheme == "d1" {
		database := strings.Trim(u.Path, "/")
		if !id.MatchString(u.Host) || !id.MatchString(database) {
			return "", tea.Errorf(tea.ValidationError, "settings.memory.url must be d1://ACCOUNT/DATABASE with the ids of both")
		}
		return api + u.Host + "/d1/database/" + database, nil
	}
	path := strings.TrimSuffix(u.Path, "/")
	before, database, found := strings.Cut(path, "/d1/database/")
	if !found || before == "" || !id.MatchString(database) || u.Host == "" {
		return "", tea.Errorf(tea.ValidationError, "settings.memory.url must be d1://ACCOUNT/DATABASE, or an address that ends with /d1/database/ID")
	}
	if u.Scheme == "http" && !store.IsLoopback(u.Hostname()) {
		return "", store.NeedsTLS("memory.url", u.Hostname(), "begin the URL with https://")
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String(), nil
}

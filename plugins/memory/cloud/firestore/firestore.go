package firestore

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Name is the value of settings.memory.engine.
const Name = "firestore"

// The environment variables.
const (
	emulatorHost    = "FIRESTORE_EMULATOR_HOST"
	credentialsFile = "GOOGLE_APPLICATION_CREDENTIALS"
)

// Option adds the backend to the memory's bundle.
func Option() memory.Option { return memory.WithBackend(Backend()) }

// Backend returns the backend.
func Backend() store.Backend {
	return store.Backend{
		Name: Name, Env: []string{credentialsFile, emulatorHost, "GCE_METADATA_HOST", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"},
		Open: func(_ context.Context, c store.Config) (*store.Stores, error) {
			return open(c, func(h *http.Client) *http.Client { return h })
		},
	}
}

// options are settings.memory.options.
type options struct {
	Endpoint string `json:"endpoint,omitempty" doc:"address of the service; default https://firestore.googleapis.com"`
	Prefix   string `json:"prefix,omitempty" doc:"beginning of the names of the collections, for several memories in one database: letters, digits, _ and -"`
	Metadata bool   `json:"metadata_server,omitempty" doc:"take the credentials from the machine's metadata server, on Google Cloud"`
	CAFile   string `json:"ca_file,omitempty" format:"path" doc:"file of certificates in PEM that are trusted in addition to the system's"`
}

const service = "https://firestore.googleapis.com"

var (
	validID     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,99}$`)
	validPrefix = regexp.MustCompile(`^([A-Za-z0-9_-]{0,98}[A-Za-z0-9-])?$`)
)

// open opens the stores. Tests change the HTTP client.
func open(c store.Config, change func(*http.Client) *http.Client) (*store.Stores, error) {
	d, err := openDriver(c, change)
	if err != nil {
		return nil, err
	}
	return d.stores(c), nil
}

func openDriver(c store.Config, change func(*http.Client) *http.Client) (*db, error) {
	root, err := database(c.URL)
	if err != nil {
		return nil, err
	}
	var o options
	if err := c.Decode(&o); err != nil {
		return nil, err
	}
	if !validPrefix.MatchString(o.Prefix) || strings.HasPrefix(o.Prefix, "__") {
		return nil, tea.Errorf(tea.ValidationError, "settings.memory.options.prefix must have letters, digits, _ and -, without __ at its beginning and _ at its end")
	}
	endpoint, emulated, err := o.address(os.Getenv(emulatorHost))
	if err != nil {
		return nil, err
	}
	h, err := httpapi.NewHTTP(httpapi.Route{CAFile: o.CAFile})
	if err != nil {
		return nil, err
	}
	h = change(h)
	token := emulatorToken
	if !emulated {
		token = (&credentials{given: c.Token, metadata: o.Metadata, http: &http.Client{Transport: h.Transport, Timeout: c.Timeout}, once: sync.Once{}}).token
	}
	h.Transport = &transport{next: h.Transport, token: token}
	return &db{client: newClient(endpoint, root, o.Prefix, c, h), now: c.Now, readOnly: c.ReadOnly, logger: c.Logger}, nil
}

// database returns the name of the documents of a database. The URL is
// firestore://PROJECT or firestore://PROJECT/DATABASE.
func database(raw string) (root string, err error) {
	u, err := store.ParseURL("memory.url", raw, Name)
	if err != nil {
		return "", err
	}
	name := strings.Trim(u.Path, "/")
	if name == "" {
		name = "(default)"
	}
	if !validID.MatchString(u.Host) || u.User != nil || u.RawQuery != "" || u.Fragment != "" || name != "(default)" && !validID.MatchString(name) {
		return "", tea.Errorf(tea.ValidationError, "settings.memory.url must be firestore://PROJECT or firestore://PROJECT/DATABASE, with the ids of a project and of a database")
	}
	return "projects/" + u.Host + "/databases/" + name + "/documents", nil
}

// address returns the address of the service and whether it is an emulator, which uses neither TLS nor accounts.
func (o options) address(emulator string) (endpoint string, emulated bool, err error) {
	if o.Endpoint == "" && emulator != "" {
		u, err := url.Parse("http://" + emulator)
		if err != nil || u.Host != emulator || !store.IsLoopback(u.Hostname()) {
			return "", false, tea.Errorf(tea.ValidationError, "%s must be HOST:PORT of an emulator on this device", emulatorHost)
		}
		return u.String(), true, nil
	}
	if o.Endpoint == "" {
		return service, false, nil
	}
	u, err := store.ParseURL("memory.options.endpoint", o.Endpoint, "https", "http")
	if err != nil {
		return "", false, err
	}
	if u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", false, tea.Errorf(tea.ValidationError, "settings.memory.options.endpoint must be https://HOST")
	}
	loopback := store.IsLoopback(u.Hostname())
	if u.Scheme == "http" && !loopback {
		return "", false, store.NeedsTLS("memory.options.endpoint", u.Hostname(), "begin it with https://")
	}
	return strings.TrimSuffix(u.String(), "/"), u.Scheme == "http", nil
}

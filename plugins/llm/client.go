package llm

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/anthropic"
	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/command"
	"github.com/the-edge-agent/tea/plugins/llm/internal/gemini"
	"github.com/the-edge-agent/tea/plugins/llm/internal/ollama"
	"github.com/the-edge-agent/tea/plugins/llm/internal/openai"
	"github.com/the-edge-agent/tea/plugins/llm/internal/replay"
	"github.com/the-edge-agent/tea/plugins/llm/internal/responses"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// Defaults of the settings; the guide names them too.
const (
	defaultTimeout       = 300 * time.Second
	defaultTokenTimeout  = 60 * time.Second
	defaultMaxRetries    = 3
	defaultRetryAfterMax = 60 * time.Second
	defaultMaxAnswer     = 4 << 20
	defaultAzureVersion  = "2024-10-21"
)

// Client is an open instance of the bundle. It is safe for concurrent use.
type Client struct {
	settings  Settings
	recording *replay.File
	limits    *slots

	table func() (*table, error) // of models and prices

	mu   sync.Mutex
	http map[httpapi.Route]*http.Client
}

func open(s tea.Settings, limits *slots) (*Client, error) {
	c := &Client{limits: limits, http: map[httpapi.Route]*http.Client{}}
	if err := s.Decode(settingsKey, &c.settings); err != nil {
		return nil, err
	}
	if file := c.settings.Replay.File; file != "" {
		c.recording = replay.Open(file)
	}
	c.table = sync.OnceValues(func() (*table, error) { return readTable(c.settings.Models) })
	if c.settings.Models != "" {
		if _, err := c.table(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.http {
		client.CloseIdleConnections()
	}
	return nil
}

// httpFor returns the HTTP client of a route and creates it on first use.
func (c *Client) httpFor(route httpapi.Route) (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	client, ok := c.http[route]
	if !ok {
		var err error
		if client, err = httpapi.NewHTTP(route); err != nil {
			return nil, err
		}
		c.http[route] = client
	}
	return client, nil
}

// observer is called with failed requests. If it returns an error, the call ends.
type observer = func(context.Context, httpapi.Failure) error

// target is a server and the model that a call uses.
type target struct {
	chat.Provider
	name, model string
	server      string // the address
	priced      string // the provider in the table of prices; "" if the server has its own
	extra       map[string]any
	limit       int // of concurrent requests
	timeout     time.Duration
}

// target resolves a connection to a target, behind a recording if recorded. observe
// receives failed requests.
func (c *Client) target(req *tea.Request, conn Connection, recorded bool, observe observer) (*target, error) {
	t := &target{
		name: conn.Provider, model: cmp.Or(conn.Model, conn.Deployment), server: cmp.Or(conn.APIBase, conn.Provider),
		priced: c.pricedAs(conn), extra: conn.Extra, limit: conn.MaxConcurrentRequests, timeout: seconds(conn.TimeoutSeconds, defaultTimeout),
	}
	if t.model == "" {
		return nil, tea.Errorf(tea.ValidationError, "%s needs a model: set settings.llm.model or the parameter model", req.Action)
	}
	var err error
	if recorded {
		t.name = providerReplay
		t.Provider, err = c.replaying(req, conn, observe)
	} else {
		t.Provider, err = c.provider(req, conn, observe)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// String names the target for messages, without credentials in its address.
func (t *target) String() string {
	u, err := url.Parse(t.server)
	if err != nil {
		return t.model
	}
	u.User, u.RawQuery = nil, ""
	return t.model + " at " + u.String()
}

func (c *Client) replaying(req *tea.Request, conn Connection, observe observer) (chat.Provider, error) {
	if c.recording == nil {
		return nil, tea.Errorf(tea.ValidationError, "provider replay needs settings.llm.replay.file")
	}
	mask := func(ctx context.Context, v any) (any, error) { return masked(ctx, req.Host, v) }
	if !c.settings.Replay.Record {
		return replay.New(c.recording, mask, nil), nil
	}
	provider, err := c.provider(req, conn, observe)
	if err != nil {
		return nil, err
	}
	return replay.New(c.recording, mask, provider), nil
}

// provider returns the provider for a connection. It does not connect.
func (c *Client) provider(req *tea.Request, conn Connection, observe observer) (chat.Provider, error) {
	if err := conn.checkModel(); err != nil {
		return nil, err
	}
	if conn.Provider == providerCommand {
		program, ok := c.settings.Commands[conn.Model]
		if !ok {
			return nil, tea.Errorf(tea.ValidationError, "the model %q is not in settings.llm.commands%s", conn.Model, diag.Ending(conn.Model, slices.Sorted(maps.Keys(c.settings.Commands))))
		}
		return command.New(conn.Model, program, cmp.Or(conn.MaxAnswerBytes, defaultMaxAnswer)), nil
	}
	base, socket, err := httpapi.SplitSocket(conn.APIBase)
	if err != nil {
		return nil, err
	}
	if conn.CAFile != "" && conn.CAFile != c.settings.CAFile && !filepath.IsAbs(conn.CAFile) {
		return nil, tea.Errorf(tea.ValidationError, "ca_file %q must be an absolute path here; paths in settings.llm are relative to the workflow file", conn.CAFile)
	}
	client, err := c.httpFor(httpapi.Route{CAFile: conn.CAFile, Socket: socket})
	if err != nil {
		return nil, err
	}
	server := &httpapi.Server{
		HTTP: client, Base: base, Header: http.Header{}, Secrets: secretsOfConnection(conn),
		MaxRetries: defaultMaxRetries, MaxRetryAfter: seconds(conn.RetryAfterMaxSeconds, defaultRetryAfterMax), RetryConflicts: true,
		TokenTimeout: seconds(conn.TokenTimeoutSeconds, defaultTokenTimeout),
		MaxAnswer:    cmp.Or(conn.MaxAnswerBytes, defaultMaxAnswer), OnFailure: observe,
	}
	if conn.MaxRetries != nil {
		server.MaxRetries = *conn.MaxRetries
	}
	if req.Attempt > 1 {
		server.MaxRetries = 0 // the node retries; retries of both would multiply
	}
	if err := authorize(server.Header, conn); err != nil {
		return nil, err
	}
	for name, value := range conn.Headers {
		server.Header.Set(name, value)
	}
	return c.protocol(server, conn)
}

// authorize sets the header that contains the key.
func authorize(header http.Header, conn Connection) error {
	key := strings.TrimSpace(conn.APIKey)
	name, value := "Authorization", "Bearer "+key
	switch conn.Provider {
	case providerAzure:
		name, value = "Api-Key", key
	case providerAnthropic:
		header.Set(anthropic.VersionHeader, anthropic.Version)
		name, value = "X-Api-Key", key
	case providerGemini:
		name, value = gemini.KeyHeader, key
	}
	if key != "" {
		header.Set(name, value)
	} else if (conn.Provider == providerAnthropic || conn.Provider == providerGemini) && conn.APIBase == "" && len(conn.Headers) == 0 {
		return tea.Errorf(tea.ValidationError, "provider %s needs a key: set api_key next to the provider, or settings.llm.providers.%s.api_key", conn.Provider, conn.Provider)
	}
	return nil
}

// protocol returns the provider that implements the protocol of a connection.
func (c *Client) protocol(server *httpapi.Server, conn Connection) (chat.Provider, error) {
	switch conn.Provider {
	case providerOpenAI:
		server.Base = cmp.Or(server.Base, openai.DefaultBase)
		return openai.New(server), nil
	case providerResponses:
		server.Base = cmp.Or(server.Base, openai.DefaultBase)
		return responses.New(server), nil
	case providerAnthropic:
		server.Base = cmp.Or(server.Base, anthropic.DefaultBase)
		return anthropic.New(server, anthropic.Options{Cache: conn.PromptCache, MaxTokens: c.maxOutput(conn)}), nil
	case providerGemini:
		server.Base = cmp.Or(server.Base, gemini.DefaultBase)
		return gemini.New(server), nil
	case providerOllama:
		server.Base = cmp.Or(server.Base, ollama.DefaultBase)
		return ollama.New(server), nil
	case providerAzure:
		if server.Base == "" {
			return nil, tea.Errorf(tea.ValidationError, "provider azure needs api_base, such as https://NAME.openai.azure.com")
		}
		return openai.NewAzure(server, cmp.Or(conn.Deployment, conn.Model), cmp.Or(conn.APIVersion, defaultAzureVersion)), nil
	}
	return nil, tea.Errorf(tea.ValidationError, "unknown provider %q; the providers are %s and replay", conn.Provider, strings.Join(providers, ", "))
}

// secretsOfConnection returns the credentials of a connection.
func secretsOfConnection(conn Connection) []string {
	secrets := httpapi.SecretsOfAddress(conn.APIBase)
	if key := strings.TrimSpace(conn.APIKey); key != "" {
		secrets = append(secrets, key)
	}
	for _, value := range conn.Headers {
		secrets = append(secrets, httpapi.SecretsOf(value)...)
	}
	return secrets
}

// maskAction is the host's action for masking the secrets of the run.
const maskAction = "secrets.mask"

// masked returns v, a value of the value model, with the secrets of the run masked. Only
// the host has the secrets.
func masked(ctx context.Context, host tea.Host, v any) (any, error) {
	resp, err := host.Invoke(ctx, maskAction, map[string]any{"value": v})
	if err != nil {
		return nil, tea.Errorf(tea.AsError(err).Type, "mask secrets for replay.file: %w", err)
	}
	result, err := resp.Result.Value()
	if err != nil {
		return nil, tea.Errorf(tea.InternalError, "mask secrets for replay.file: %w", err)
	}
	object, _ := result.(map[string]any)
	return object["value"], nil
}

// seconds converts a limit from the settings; 0 means no limit.
func seconds(limit *float64, otherwise time.Duration) time.Duration {
	if limit == nil {
		return otherwise
	}
	return time.Duration(*limit * float64(time.Second))
}

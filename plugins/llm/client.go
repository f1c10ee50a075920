package llm

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/ollama"
	"github.com/the-edge-agent/tea/plugins/llm/internal/openai"
	"github.com/the-edge-agent/tea/plugins/llm/internal/replay"
	"github.com/the-edge-agent/tea/plugins/llm/internal/transport"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Defaults of the settings; the guide names them too.
const (
	defaultTimeout      = 300 * time.Second
	defaultTokenTimeout = 60 * time.Second
	defaultMaxRetries   = 3
	defaultAzureVersion = "2024-10-21"
)

// Client is the bundle's instance for one set of settings. It is safe for
// concurrent use.
type Client struct {
	settings  Settings
	transport *transport.Client
	recording *replay.File
}

func open(_ context.Context, s tea.Settings) (any, error) {
	c := &Client{transport: &transport.Client{HTTP: transport.NewHTTP()}}
	if err := s.Decode(settingsKey, &c.settings); err != nil {
		return nil, err
	}
	if file := c.settings.Replay.File; file != "" {
		c.recording = replay.Open(file)
	}
	return c, nil
}

// Close lets go of idle connections.
func (c *Client) Close() error {
	c.transport.HTTP.CloseIdleConnections()
	return nil
}

// target is the server that a call asks.
type target struct {
	chat.Provider
	name, model string
	timeout     time.Duration
}

// target finds out whom a call asks: base is what the settings say for this
// kind of call, conn what the call says itself.
func (c *Client) target(ctx context.Context, req *tea.Request, conn, base Connection) (*target, error) {
	conn = conn.over(base)
	t := &target{name: conn.Provider, model: cmp.Or(conn.Model, conn.Deployment), timeout: seconds(conn.TimeoutSeconds, defaultTimeout)}
	if t.model == "" {
		return nil, tea.Errorf(tea.ValidationError, "%s needs a model: set settings.llm.model or the parameter model", req.Action)
	}
	var err error
	if conn.Provider == providerReplay {
		t.Provider, err = c.replaying(ctx, req, conn)
	} else {
		t.Provider, err = c.provider(ctx, req, conn)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (c *Client) replaying(ctx context.Context, req *tea.Request, conn Connection) (chat.Provider, error) {
	if c.recording == nil {
		return nil, tea.Errorf(tea.ValidationError, "provider replay needs settings.llm.replay.file")
	}
	if !c.settings.Replay.Record {
		return replay.New(c.recording, nil), nil
	}
	conn.Provider = c.settings.Replay.Provider
	if conn.Provider == "" && c.settings.Provider != providerReplay {
		conn.Provider = c.settings.Provider
	}
	real, err := c.provider(ctx, req, conn)
	if err != nil {
		return nil, err
	}
	return replay.New(c.recording, real), nil
}

// provider makes the provider for a connection; it costs nothing until it is
// asked.
func (c *Client) provider(ctx context.Context, req *tea.Request, conn Connection) (chat.Provider, error) {
	server := &transport.Server{
		Client: c.transport, Base: conn.APIBase, Header: http.Header{},
		MaxRetries: defaultMaxRetries, TokenTimeout: seconds(conn.TokenTimeoutSeconds, defaultTokenTimeout),
		OnRetry: func(r transport.Retry) { logRetry(ctx, req.Host, r) },
	}
	server.Secrets = secretsOfAddress(conn.APIBase)
	if conn.MaxRetries != nil {
		server.MaxRetries = *conn.MaxRetries
	}
	if key := strings.TrimSpace(conn.APIKey); key != "" {
		if conn.Provider == providerAzure {
			server.Header.Set("Api-Key", key)
		} else {
			server.Header.Set("Authorization", "Bearer "+key)
		}
		server.Secrets = append(server.Secrets, key)
	}
	for name, value := range conn.Headers {
		server.Header.Set(name, value)
		server.Secrets = append(server.Secrets, secretsOf(value)...)
	}
	switch conn.Provider {
	case providerOpenAI, "":
		server.Base = cmp.Or(server.Base, openai.DefaultBase)
		return openai.New(server), nil
	case providerOllama:
		server.Base = cmp.Or(server.Base, ollama.DefaultBase)
		return ollama.New(server), nil
	case providerAzure:
		if server.Base == "" {
			return nil, tea.Errorf(tea.ValidationError, "provider azure needs api_base, such as https://NAME.openai.azure.com")
		}
		return openai.NewAzure(server, cmp.Or(conn.Deployment, conn.Model), cmp.Or(conn.APIVersion, defaultAzureVersion)), nil
	}
	return nil, tea.Errorf(tea.ValidationError, "provider %q is not known; there are openai, ollama, azure and replay", conn.Provider)
}

// secretsOf names what of a header's value must not show: the value and,
// behind a scheme such as Bearer, the credential. Values too short to be a
// credential are left alone, since they would blank ordinary words.
func secretsOf(header string) []string {
	const shortest = 8
	var secrets []string
	for _, text := range append(strings.Fields(header), header) {
		if len(text) >= shortest {
			secrets = append(secrets, text)
		}
	}
	return secrets
}

// secretsOfAddress names the password and the query's values of an address,
// as they are and as they are written there.
func secretsOfAddress(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var secrets []string
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, secretsOf(password)...)
		secrets = append(secrets, secretsOf(url.QueryEscape(password))...)
	}
	for _, values := range u.Query() {
		for _, value := range values {
			secrets = append(secrets, secretsOf(value)...)
			secrets = append(secrets, secretsOf(url.QueryEscape(value))...)
		}
	}
	return secrets
}

func logRetry(ctx context.Context, host tea.Host, r transport.Retry) {
	host.Log(ctx, slog.LevelWarn, fmt.Sprintf("the model server is asked again in %s", r.Wait.Round(time.Millisecond)), map[string]any{
		"attempt": r.Attempt, "wait_ms": r.Wait.Milliseconds(), "error_type": string(r.Reason.Type), "error": r.Reason.Message,
	})
}

// seconds reads a limit; 0 means none.
func seconds(limit *float64, otherwise time.Duration) time.Duration {
	if limit == nil {
		return otherwise
	}
	return time.Duration(*limit * float64(time.Second))
}

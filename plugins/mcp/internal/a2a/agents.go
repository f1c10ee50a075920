package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// SettingsKey is the top-level key of a workflow's settings.
const SettingsKey = "a2a"

// Settings are the settings under settings.a2a.
type Settings struct {
	Agents map[string]Agent `json:"agents,omitempty" doc:"the agents by name"`
}

// Agent has the address and credentials of an agent.
type Agent struct {
	URL            string            `json:"url" pattern:"^https?://." doc:"base address of the agent; its card is at /.well-known/agent-card.json below it"`
	Token          string            `json:"token,omitempty" secret:"true" doc:"sent as a bearer token"`
	Headers        map[string]string `json:"headers,omitempty" secret:"true" doc:"further HTTP headers"`
	CAFile         string            `json:"ca_file,omitempty" format:"path" doc:"certificates in PEM to trust besides the system's"`
	TimeoutSeconds float64           `json:"timeout_seconds,omitempty" default:"3600" minimum:"0.1" maximum:"604800" doc:"limit for the time until a task ends or has a question"`
}

// Agents is the set of agents of one workflow. It is safe for concurrent use. The owner closes it.
type Agents struct{ agents map[string]*agent }

type agent struct {
	name    string
	config  Agent
	server  *httpapi.Server
	timeout time.Duration

	connecting chan struct{} // has an element while the card is read
	endpoint   atomic.Pointer[endpoint]
}

const (
	maxAnswer  = 8 << 20
	maxRetries = 3
	// maxPollRetries is for an agent or a network that is away for some minutes.
	maxPollRetries = 12
	// maxMessage bounds the texts of an agent in errors and progress, in bytes.
	maxMessage    = 2000
	maxRetryAfter = 30 * time.Second
	cardPath      = "/.well-known/agent-card.json"
	binding       = "JSONRPC"
	// defaultTimeout is for settings that were not decoded from JSON, in seconds.
	defaultTimeout = 3600
)

// polls has the waits between requests for the state of a task.
var polls = backoff.Policy{Base: 200 * time.Millisecond, Max: 5 * time.Second, Multiplier: 1.5}

// Open returns the agents of the settings. It sends no requests.
func Open(s Settings) (*Agents, error) {
	a := &Agents{agents: map[string]*agent{}}
	for name, config := range s.Agents {
		u, err := url.Parse(config.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, tea.Errorf(tea.ValidationError, "settings.a2a.agents.%s.url: expected an address that begins with http:// or https://", name)
		}
		client, err := httpapi.NewHTTP(httpapi.Route{CAFile: config.CAFile})
		if err != nil {
			return nil, err
		}
		header, secrets := http.Header{}, httpapi.SecretsOfAddress(config.URL)
		for key, v := range config.Headers {
			header.Set(key, v)
			secrets = append(secrets, httpapi.SecretsOf(v)...)
		}
		if config.Token != "" {
			header.Set("Authorization", "Bearer "+config.Token)
			secrets = append(secrets, config.Token)
		}
		if len(secrets) > 0 && u.Scheme == "http" && !loopback(u.Hostname()) {
			slog.Warn("credentials are sent without encryption: the address of the agent " + name + " begins with http://")
		}
		a.agents[name] = &agent{
			name: name, config: config, connecting: make(chan struct{}, 1), timeout: time.Duration(cmp.Or(config.TimeoutSeconds, defaultTimeout) * float64(time.Second)),
			server: &httpapi.Server{
				HTTP: client, Base: strings.TrimSuffix(config.URL, "/"), Header: header, Secrets: secrets,
				MaxRetries: maxRetries, MaxRetryAfter: maxRetryAfter, MaxAnswer: maxAnswer,
			},
		}
	}
	return a, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close closes idle connections.
func (a *Agents) Close() {
	for _, agent := range a.agents {
		agent.server.HTTP.CloseIdleConnections()
	}
}

func (a *Agents) agent(name string) (*agent, error) {
	if agent := a.agents[name]; agent != nil {
		return agent, nil
	}
	names := slices.Sorted(maps.Keys(a.agents))
	have := "settings.a2a.agents has none"
	if len(names) > 0 {
		have = "settings.a2a.agents has " + strings.Join(names, ", ")
	}
	return nil, tea.Errorf(tea.NotFound, "unknown agent %q%s; %s", name, diag.Ending(name, names), have)
}

// errorf returns an error of this agent.
func (a *agent) errorf(t tea.ErrorType, format string, args ...any) *tea.Error {
	e := tea.Errorf(t, "agent %s: %w", a.name, fmt.Errorf(format, args...))
	e.Source = a.name
	return e
}

// CardParams are the parameters of a2a.card.
type CardParams struct {
	Agent string `json:"agent" doc:"name of the agent in settings.a2a.agents"`
}

// CardResult is the card of an agent.
type CardResult struct {
	Success bool           `json:"success" doc:"always true"`
	Card    map[string]any `json:"card" doc:"the agent card, with name, description and skills"`
}

// Card is the action a2a.card.
func (a *Agents) Card(ctx context.Context, _ *tea.Request, p CardParams) (*CardResult, error) {
	agent, err := a.agent(p.Agent)
	if err != nil {
		return nil, err
	}
	raw, err := agent.card(ctx)
	if err != nil {
		return nil, err
	}
	result := &CardResult{Success: true}
	if err := json.Unmarshal(raw, &result.Card); err != nil {
		return nil, agent.errorf(tea.ConnectionError, "the card is not a JSON object: %w", err)
	}
	return result, nil
}

func (a *agent) card(ctx context.Context) (raw json.RawMessage, err error) {
	err = a.server.Do(ctx, httpapi.Request{Method: http.MethodGet, Path: cardPath}, func(r httpapi.Reply) error {
		return r.Decode(&raw, "an agent card")
	})
	return raw, a.explain(err)
}

// explain adds the agent's name to an error of a request.
func (a *agent) explain(err error) error {
	if err == nil {
		return nil
	}
	e := *tea.AsError(err)
	e.Message, e.Source = "agent "+a.name+": "+strings.ReplaceAll(e.Message, "api_base", "url"), a.name
	return &e
}

// endpoint is an address of an agent and its version of the protocol.
type endpoint struct {
	server *httpapi.Server
	polled *httpapi.Server // for questions about a task
	old    bool            // 0.3 instead of 1.0
}

// connect returns the endpoint that the card names.
func (a *agent) connect(ctx context.Context) (*endpoint, error) {
	select {
	case a.connecting <- struct{}{}:
		defer func() { <-a.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if e := a.endpoint.Load(); e != nil {
		return e, nil
	}
	raw, err := a.card(ctx)
	if err != nil {
		return nil, err
	}
	var card struct {
		SupportedInterfaces []struct{ URL, ProtocolBinding, ProtocolVersion string }
		URL                 string // of version 0.3
		PreferredTransport  string
	}
	if err := json.Unmarshal(raw, &card); err != nil {
		return nil, a.errorf(tea.ConnectionError, "the card cannot be read: %w", err)
	}
	e, address := endpoint{old: true}, ""
	if card.PreferredTransport == "" || card.PreferredTransport == binding {
		address = card.URL
	}
	for _, i := range card.SupportedInterfaces {
		if current := !strings.HasPrefix(i.ProtocolVersion, "0."); i.ProtocolBinding == binding && (current && e.old || address == "") {
			e.old, address = !current, i.URL
		}
	}
	if address == "" {
		return nil, a.errorf(tea.DependencyMissing, "the card offers no JSON-RPC, the only transport that tea uses")
	}
	u, err := url.Parse(address)
	base, _ := url.Parse(a.config.URL)
	if err != nil || host(u) != host(base) || u.Scheme != base.Scheme {
		return nil, a.errorf(tea.PermissionDenied, "its card says that it is at %s, another server than settings.a2a.agents.%s.url; correct url, or start the agent with its public address", address, a.name)
	}
	u.User = base.User
	server := *a.server
	server.Base, e.server = u.String(), &server
	polled := server
	polled.MaxRetries, e.polled = maxPollRetries, &polled
	a.endpoint.Store(&e)
	return &e, nil
}

// host returns the host and the port of an address.
func host(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

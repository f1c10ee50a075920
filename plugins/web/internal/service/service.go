// Package service connects to the web services that plugins/web uses. Start
// with [Open].
package service

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// Settings are the settings for reaching a service.
type Settings struct {
	APIBase              string            `json:"api_base,omitempty" doc:"address of the service, or unix:/path/to.sock:/path; default: its operator's"`
	APIKey               string            `json:"api_key,omitempty" secret:"true" doc:"key, if the service requires one"`
	Headers              map[string]string `json:"headers,omitempty" secret:"true" doc:"further HTTP headers"`
	CAFile               string            `json:"ca_file,omitempty" format:"path" doc:"file of certificates in PEM format to trust in addition to the system's"`
	TimeoutSeconds       *float64          `json:"timeout_seconds,omitempty" minimum:"0.1" maximum:"86400" doc:"limit for one request, retries included; default 60"`
	MaxRetries           *int              `json:"max_retries,omitempty" minimum:"0" maximum:"20" doc:"retries after a transient failure; default 3. When the node itself is retried, each further attempt makes one request"`
	RetryAfterMaxSeconds *float64          `json:"retry_after_max_seconds,omitempty" minimum:"0" doc:"longest wait that the service may ask for with Retry-After; a request that would wait longer fails; default 60"`
}

// Defaults of the settings; the guide names them too.
const (
	defaultTimeout       = 60 * time.Second
	defaultMaxRetries    = 3
	defaultRetryAfterMax = 60 * time.Second
)

// Service is an HTTP service. It is safe for concurrent use. The caller closes it.
type Service struct {
	// Name is the name of the provider, such as brave.
	Name string
	// Key is the path of the settings, such as settings.web.search.
	Key string

	settings Settings
	open     func() (*http.Client, string, error)
}

// Open returns the service with the settings under key. It does not connect. base is
// the default address.
func Open(name, key, base string, s Settings) *Service {
	if s.APIBase == "" {
		s.APIBase = base
	}
	s.APIKey = strings.TrimSpace(s.APIKey)
	c := &Service{Name: name, Key: key, settings: s}
	var once sync.Once
	var client *http.Client
	var address string
	var err error
	c.open = func() (*http.Client, string, error) {
		once.Do(func() {
			var socket string
			if address, socket, err = httpapi.SplitSocket(s.APIBase); err == nil {
				client, err = httpapi.NewHTTP(httpapi.Route{CAFile: s.CAFile, Socket: socket})
			}
		})
		return client, address, err
	}
	return c
}

// Close closes idle connections.
func (s *Service) Close() error {
	if client, _, _ := s.open(); client != nil {
		client.CloseIdleConnections()
	}
	return nil
}

// Server returns the server for the requests of one call. credential holds the headers
// with the key; errors do not show them.
func (s *Service) Server(req *tea.Request, credential http.Header) (*httpapi.Server, error) {
	client, address, err := s.open()
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, tea.Errorf(tea.ValidationError, "%s needs the address of a server: set %s.api_base", s.Name, s.Key)
	}
	server := &httpapi.Server{
		HTTP: client, Base: address, Header: http.Header{"Accept": {"application/json"}},
		Secrets:    httpapi.SecretsOfAddress(address),
		MaxRetries: or(s.settings.MaxRetries, defaultMaxRetries), MaxRetryAfter: seconds(s.settings.RetryAfterMaxSeconds, defaultRetryAfterMax),
		OnFailure: func(ctx context.Context, f httpapi.Failure) error {
			if f.Again {
				req.Host.Log(ctx, slog.LevelWarn, fmt.Sprintf("retrying the request to %s in %s", s.Name, f.Wait.Round(time.Millisecond)), map[string]any{
					"attempt": f.Attempt, "wait_ms": f.Wait.Milliseconds(), "error_type": string(f.Reason.Type), "error": f.Reason.Message,
				})
			}
			return nil
		},
	}
	if req.Attempt > 1 {
		server.MaxRetries = 0 // the node retries; retries of both would multiply
	}
	for name, values := range credential {
		server.Header[name] = values
	}
	for name, value := range s.settings.Headers {
		server.Header.Set(name, value)
		server.Secrets = append(server.Secrets, httpapi.SecretsOf(value)...)
	}
	if s.settings.APIKey != "" {
		server.Secrets = append(server.Secrets, s.settings.APIKey)
	}
	return server, nil
}

// APIKey returns the key of the service. The error of a missing key names the
// setting.
func (s *Service) APIKey() (string, error) {
	if s.settings.APIKey == "" {
		return "", tea.Errorf(tea.ValidationError, "%s needs a key: set %s.api_key, for example to ${%s_API_KEY} or {{ secrets.%s }}", s.Name, s.Key, strings.ToUpper(s.Name), s.Name)
	}
	return s.settings.APIKey, nil
}

// HasKey reports whether the settings have a key.
func (s *Service) HasKey() bool { return s.settings.APIKey != "" }

// Expire limits a request by the longer of limit and the timeout of the settings.
func (s *Service) Expire(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return httpapi.Expire(ctx, max(limit, seconds(s.settings.TimeoutSeconds, defaultTimeout)))
}

// Bearer returns the header for a key.
func Bearer(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

func seconds(n *float64, otherwise time.Duration) time.Duration {
	if n == nil {
		return otherwise
	}
	return time.Duration(*n * float64(time.Second))
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

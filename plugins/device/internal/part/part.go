package part

import (
	"context"
	"errors"
	"io"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Part is a namespace of actions.
type Part struct {
	// Key is the namespace, and the top-level key of its settings.
	Key      string
	Settings *schema.Schema
	// Open returns the client that the actions are methods of. It does not connect. A
	// client that is an io.Closer is closed at the end.
	Open    func(s tea.Settings, guards *guard.Guards) (any, error)
	Actions []tea.Action
}

// Clients are the clients of the parts by their keys.
type Clients map[string]any

// Open opens the parts.
func Open(parts []Part, s tea.Settings, guards *guard.Guards) (Clients, error) {
	clients := Clients{}
	for _, p := range parts {
		c, err := p.Open(s, guards)
		if err != nil {
			return nil, errors.Join(err, clients.Close())
		}
		clients[p.Key] = c
	}
	return clients, nil
}

// Close closes the clients.
func (c Clients) Close() error {
	var errs []error
	for _, client := range c {
		if closer, ok := client.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
	}
	return errors.Join(errs...)
}

// Action returns the action KEY.VERB, which calls a method of the part's client.
func Action[C, P, R any](key, verb, summary string, method func(client C, ctx context.Context, req *tea.Request, params P) (R, error), options ...tea.Option) tea.Action {
	return tea.NewAction(key+"."+verb, summary, func(ctx context.Context, req *tea.Request, params P) (R, error) {
		return method(req.Instance.(Clients)[key].(C), ctx, req, params)
	}, options...)
}

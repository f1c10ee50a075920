package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Linked opens a bundle inside this process.
func Linked(b *tea.Bundle, settings tea.Settings) Opener {
	return func(ctx context.Context) (Invoker, error) {
		l := &linked{bundle: b}
		if b.Open != nil {
			instance, err := b.Open(ctx, settings)
			if err != nil {
				return nil, tea.AsError(err)
			}
			l.instance = instance
		}
		return l, nil
	}
}

// Select gives a bundle the settings it asks for and no others.
func Select(m tea.Manifest, settings map[string]any) (tea.Settings, error) {
	out := tea.Settings{}
	for key := range m.Settings {
		v, ok := settings[key]
		if !ok {
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode settings.%s: %w", key, err)
		}
		out[key] = raw
	}
	return out, nil
}

// linked is a bundle in this process with its instance.
type linked struct {
	bundle   *tea.Bundle
	instance any
}

// Invoke calls the handler; a panic is an internal_error.
func (l *linked) Invoke(ctx context.Context, req *tea.Request) (res *tea.Response, err error) {
	action := l.bundle.Find(req.Action)
	if action == nil {
		return nil, tea.Errorf(tea.NotFound, "bundle %s has no action %q", l.bundle.Name, req.Action)
	}
	defer func() {
		if p := recover(); p != nil {
			failure := tea.Errorf(tea.InternalError, "%s panicked: %v", req.Action, p)
			failure.Source = l.bundle.Name
			failure.Details = map[string]any{"stack": string(debug.Stack())}
			res, err = nil, failure
		}
	}()
	req.Instance = l.instance
	return action.Handle(ctx, req)
}

// Close closes the instance where it can be closed.
func (l *linked) Close() error {
	if c, ok := l.instance.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

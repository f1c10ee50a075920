package catalog

import (
	"context"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Linked opens a bundle inside this process.
func Linked(b *tea.Bundle, settings tea.Settings) Opener {
	return func(ctx context.Context) (Invoker, error) {
		instance, err := b.NewInstance(ctx, settings)
		if err != nil {
			return nil, err
		}
		return instance, nil
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
		raw, err := tea.ValuePayload(v).JSON()
		if err != nil {
			return nil, fmt.Errorf("encode settings.%s: %w", key, err)
		}
		out[key] = raw
	}
	return out, nil
}

package catalog

import (
	"context"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Linked opens a bundle inside this process.
func Linked(b *tea.Bundle) Opener {
	return func(ctx context.Context, settings map[string]any) (Invoker, error) {
		selected, err := Select(b.Settings, settings)
		if err != nil {
			return nil, err
		}
		instance, err := b.NewInstance(ctx, selected)
		if err != nil {
			return nil, err
		}
		return instance, nil
	}
}

// Select gives a bundle the settings it asks for and no others.
func Select(declared map[string]*schema.Schema, settings map[string]any) (tea.Settings, error) {
	out := tea.Settings{}
	for key := range declared {
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

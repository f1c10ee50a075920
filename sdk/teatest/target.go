package teatest

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Target is a plugin under test, whatever carries the calls: [Linked] in this
// process or a [Process] of its own.
type Target interface {
	// Describe gives the manifest.
	Describe(ctx context.Context) (tea.Manifest, error)
	// Open makes an instance for the settings; the caller closes it.
	Open(ctx context.Context, settings tea.Settings) (Instance, error)
}

// Instance is an opened bundle under test.
type Instance interface {
	Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error)
	Close() error
}

// Linked is a bundle that runs inside the test.
func Linked(bundle tea.Bundle) Target { return linked{bundle: &bundle} }

type linked struct{ bundle *tea.Bundle }

func (l linked) Describe(context.Context) (tea.Manifest, error) {
	return l.bundle.Manifest(), l.bundle.Check()
}

func (l linked) Open(ctx context.Context, settings tea.Settings) (Instance, error) {
	routeLogs()
	inst, err := l.bundle.NewInstance(ctx, settings)
	if err != nil {
		return nil, err
	}
	return inst, nil
}

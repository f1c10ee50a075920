package conform

import (
	"context"
	"errors"
	"log/slog"
	"os"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Target is a plugin under test: [Linked] in this process, or a separate
// [Process].
type Target interface {
	// Describe returns the manifest.
	Describe(ctx context.Context) (tea.Manifest, error)
	// Open opens an instance with the settings. The caller closes it.
	Open(ctx context.Context, settings tea.Settings) (Instance, error)
}

// Instance is an opened bundle under test.
type Instance interface {
	Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error)
	Close() error
}

// Linked returns a bundle that runs in this process.
func Linked(bundle tea.Bundle) Target { return linked{bundle: &bundle} }

type linked struct{ bundle *tea.Bundle }

func (l linked) Describe(context.Context) (tea.Manifest, error) {
	return l.bundle.Manifest(), l.bundle.Check()
}

func (l linked) Open(ctx context.Context, settings tea.Settings) (Instance, error) {
	RouteLogs()
	inst, err := l.bundle.NewInstance(ctx, settings)
	if err != nil {
		return nil, err
	}
	return inst, nil
}

var firstLogger = slog.Default()

// RouteLogs sends slog records of actions to the host of the call, as in a plugin's
// process. It keeps a default logger that the program has set.
func RouteLogs() {
	if slog.Default() == firstLogger {
		slog.SetDefault(slog.New(tea.LogHandler(slog.NewTextHandler(os.Stderr, nil))))
	}
}

// Call opens an instance, makes one call and closes the instance. The result is
// in the value model.
func Call(ctx context.Context, target Target, settings tea.Settings, req *tea.Request) (any, error) {
	inst, err := target.Open(ctx, settings)
	if err != nil {
		return nil, err
	}
	result, err := invoke(ctx, inst, req)
	return result, errors.Join(err, inst.Close())
}

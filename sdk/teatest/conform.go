package teatest

import (
	"context"
	"io"
	"os/exec"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/conform"
)

// The types that a test shares with package conform.
type (
	// Host answers an action's calls of its host and records them.
	Host = conform.Host
	// Record is the record of a Host.
	Record = conform.Record
	// Log is one log record.
	Log = conform.Log
	// Progress is one progress report.
	Progress = conform.Progress
	// Invoked is one call of another action.
	Invoked = conform.Invoked
	// Target is a plugin under test.
	Target = conform.Target
	// Instance is an opened bundle under test.
	Instance = conform.Instance
	// Process is a plugin in a separate process.
	Process = conform.Process
)

// Linked returns a bundle that runs inside the test.
func Linked(bundle tea.Bundle) Target { return conform.Linked(bundle) }

// Probe returns the bundle whose actions exercise every part of the protocol.
func Probe() tea.Bundle { return conform.Probe() }

// Start runs a command as a plugin; see [conform.Start].
func Start(ctx context.Context, cmd *exec.Cmd, output io.Writer) (*Process, error) {
	return conform.Start(ctx, cmd, output)
}

// StartKnown is [Start] for a plugin whose manifest is known.
func StartKnown(ctx context.Context, cmd *exec.Cmd, output io.Writer, manifest tea.Manifest) (*Process, error) {
	return conform.StartKnown(ctx, cmd, output, manifest)
}

// Package builtin collects the host's own bundles that need only settings:
// json, csv, data, http, file and time, each in a package below this one. Start
// with [Bundles].
package builtin

import (
	"github.com/the-edge-agent/tea/host/internal/builtin/csvactions"
	"github.com/the-edge-agent/tea/host/internal/builtin/dataactions"
	"github.com/the-edge-agent/tea/host/internal/builtin/fileactions"
	"github.com/the-edge-agent/tea/host/internal/builtin/httpactions"
	"github.com/the-edge-agent/tea/host/internal/builtin/jsonactions"
	"github.com/the-edge-agent/tea/host/internal/builtin/timeactions"
	"github.com/the-edge-agent/tea/host/internal/builtin/traceactions"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Options are the options of the host's bundles.
type Options struct {
	// Version is the version of the host and the bundles.
	Version string
	// WorkDir is the base of relative file roots; "" is the working directory.
	WorkDir string
}

// Bundles returns the bundles, sorted by name.
func Bundles(o Options) []*tea.Bundle {
	return []*tea.Bundle{
		csvactions.Bundle(o.Version, o.WorkDir),
		dataactions.Bundle(o.Version),
		fileactions.Bundle(o.Version, o.WorkDir),
		httpactions.Bundle(o.Version),
		jsonactions.Bundle(o.Version),
		timeactions.Bundle(o.Version),
		traceactions.Bundle(o.Version),
	}
}

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

// Options are what the bundles need to know of their host.
type Options struct {
	// Version is the host's version, which is the bundles' too.
	Version string
	// WorkDir is where relative file roots begin; "" is the working directory.
	WorkDir string
}

// Bundles makes the bundles, in the order of their names.
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

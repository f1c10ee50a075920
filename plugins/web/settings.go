package web

import (
	"github.com/the-edge-agent/tea/plugins/web/internal/chromium"
	"github.com/the-edge-agent/tea/plugins/web/internal/local"
	"github.com/the-edge-agent/tea/plugins/web/internal/search"
)

// Settings are what a workflow sets under settings.web, for all its calls.
type Settings struct {
	Provider string `json:"provider,omitempty" enum:"local" doc:"who reads pages: local fetches them itself; default local"`
	local.Settings
	Chromium chromium.Settings `json:"chromium,omitzero" doc:"the browser of render and screenshot"`
	Search   search.Settings   `json:"search,omitzero" doc:"the service of web.search"`
}

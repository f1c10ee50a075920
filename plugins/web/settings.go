package web

import (
	"github.com/the-edge-agent/tea/plugins/web/internal/chromium"
	"github.com/the-edge-agent/tea/plugins/web/internal/firecrawl"
	"github.com/the-edge-agent/tea/plugins/web/internal/local"
	"github.com/the-edge-agent/tea/plugins/web/internal/search"
)

// Settings are what a workflow sets under settings.web, for all its calls.
type Settings struct {
	Provider string `json:"provider,omitempty" enum:"local,firecrawl" doc:"reads pages: local fetches them itself, firecrawl is a service; default local"`
	local.Settings
	Chromium        chromium.Settings  `json:"chromium,omitzero" doc:"the browser of render and screenshot"`
	Firecrawl       firecrawl.Settings `json:"firecrawl,omitzero" doc:"the service of provider: firecrawl"`
	Search          search.Settings    `json:"search,omitzero" doc:"the service of web.search"`
	ExtractMaxBytes int                `json:"extract_max_bytes,omitempty" minimum:"1000" maximum:"10000000" doc:"bytes of a page's text that web.extract gives to the model; default 100000"`
}

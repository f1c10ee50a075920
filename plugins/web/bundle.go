package web

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/web/internal/chromium"
	"github.com/the-edge-agent/tea/plugins/web/internal/firecrawl"
	"github.com/the-edge-agent/tea/plugins/web/internal/local"
	"github.com/the-edge-agent/tea/plugins/web/internal/search"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// settingsKey is the top-level key of a workflow's settings.
const settingsKey = "web"

const version = "0.1.0"

// Bundle is the set of actions, for serve.Main or for linking into a host.
//
// The actions have no side effects, so a host can repeat a call that a crash of the
// plugin interrupted. web.crawl continues from its notes.
func Bundle() tea.Bundle {
	return tea.Bundle{
		Name:        "web",
		Version:     version,
		Description: "Reads, crawls and searches the web, and reads documents.",
		Settings:    map[string]*schema.Schema{settingsKey: schema.Of[Settings](), fileKey: schema.Of[FileSettings]()},
		Open:        func(_ context.Context, s tea.Settings) (any, error) { return open(s) },
		Actions: []tea.Action{
			tea.NewMethod("web.scrape", "Reads one page.", (*Client).Scrape, tea.Idempotent(), tea.Reads()),
			tea.NewMethod("web.crawl", "Reads the pages of a site.", (*Client).Crawl, tea.Streaming(), tea.Idempotent(), tea.Reads()),
			tea.NewMethod("web.search", "Searches the web.", (*Client).Search, tea.Idempotent(), tea.Reads()),
			tea.NewMethod("web.extract", "Reads a page and fills a JSON Schema from it.", (*Client).Extract, tea.Streaming(), tea.Idempotent(), tea.Reads()),
			tea.NewMethod("text.extract", "Reads the text of a file: PDF, DOCX, XLSX, PPTX, EPUB, e-mail, HTML or Markdown.", (*Client).Text, tea.Idempotent(), tea.Reads()),
		},
	}
}

// Settings are the settings under settings.web, for all calls of a workflow.
type Settings struct {
	Provider string `json:"provider,omitempty" enum:"local,firecrawl" doc:"reads pages: local fetches them itself, firecrawl is a service; default local"`
	local.Settings
	Chromium        chromium.Settings  `json:"chromium,omitzero" doc:"the browser of render and screenshot"`
	Firecrawl       firecrawl.Settings `json:"firecrawl,omitzero" doc:"the service of provider: firecrawl"`
	Search          search.Settings    `json:"search,omitzero" doc:"the service of web.search"`
	ExtractMaxBytes int                `json:"extract_max_bytes,omitempty" minimum:"1000" maximum:"10000000" doc:"bytes of a page's text that web.extract passes to the model; default 100000"`
}

package local

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/safenet"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Crawl reads the pages of a site.
func (r *Reader) Crawl(ctx context.Context, req *tea.Request, p page.CrawlParams) (*page.CrawlResult, error) {
	if _, err := safenet.ParseURL(p.URL); err != nil {
		return nil, err
	}
	return nil, tea.Errorf(tea.DependencyMissing, "web.crawl has no local provider yet")
}

package web

import (
	"context"
	"errors"
	"io"

	"github.com/the-edge-agent/tea/plugins/web/internal/chromium"
	"github.com/the-edge-agent/tea/plugins/web/internal/firecrawl"
	"github.com/the-edge-agent/tea/plugins/web/internal/local"
	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/search"
	tea "github.com/the-edge-agent/tea/sdk"
)

// providerFirecrawl is the name of the provider besides the default.
const providerFirecrawl = "firecrawl"

// Client is the bundle's instance for one set of settings. It is safe for
// concurrent use.
type Client struct {
	settings  Settings
	file      FileSettings
	browser   *chromium.Browser
	local     *local.Reader
	firecrawl *firecrawl.Client
	searcher  *search.Searcher
}

func open(s tea.Settings) (*Client, error) {
	c := new(Client)
	if err := s.Decode(settingsKey, &c.settings); err != nil {
		return nil, err
	}
	if err := s.Decode(fileKey, &c.file); err != nil {
		return nil, err
	}
	guard := c.settings.Guard()
	c.browser = chromium.New(c.settings.Chromium, guard, c.settings.UserAgent, int(c.settings.MaxBodyBytes))
	c.local = local.Open(c.settings.Settings, version, c.browser)
	c.firecrawl = firecrawl.Open(c.settings.Firecrawl, guard)
	c.searcher = search.Open(c.settings.Search)
	return c, nil
}

var _ io.Closer = (*Client)(nil)

// Close stops the browser and closes idle connections.
func (c *Client) Close() error {
	return errors.Join(c.browser.Close(), c.local.Close(), c.firecrawl.Close(), c.searcher.Close())
}

// Scrape implements web.scrape.
func (c *Client) Scrape(ctx context.Context, req *tea.Request, p page.ScrapeParams) (*page.Page, error) {
	if c.settings.Provider == providerFirecrawl {
		return c.firecrawl.Scrape(ctx, req, p)
	}
	return c.local.Scrape(ctx, p)
}

// Crawl implements web.crawl.
func (c *Client) Crawl(ctx context.Context, req *tea.Request, p page.CrawlParams) (*page.CrawlResult, error) {
	if c.settings.Provider == providerFirecrawl {
		return c.firecrawl.Crawl(ctx, req, p)
	}
	return c.local.Crawl(ctx, req, p)
}

// Search implements web.search.
func (c *Client) Search(ctx context.Context, req *tea.Request, p page.SearchParams) (*page.SearchResult, error) {
	return c.searcher.Search(ctx, req, p)
}

package web

import (
	"context"
	"errors"
	"io"

	"github.com/the-edge-agent/tea/plugins/web/internal/chromium"
	"github.com/the-edge-agent/tea/plugins/web/internal/local"
	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/safenet"
	"github.com/the-edge-agent/tea/plugins/web/internal/search"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Names of the providers.
const (
	providerLocal = "local"
)

// Client is the bundle's instance for one set of settings. It is safe for
// concurrent use.
type Client struct {
	settings Settings
	browser  *chromium.Browser
	local    *local.Reader
	searcher *search.Searcher
}

func open(s tea.Settings) (*Client, error) {
	c := new(Client)
	if err := s.Decode(settingsKey, &c.settings); err != nil {
		return nil, err
	}
	guard := &safenet.Guard{AllowPrivate: c.settings.AllowPrivate}
	c.browser = chromium.New(c.settings.Chromium, guard, c.settings.UserAgent, int(c.settings.MaxBodyBytes))
	c.local = local.Open(c.settings.Settings, version, c.browser)
	c.searcher = search.Open(c.settings.Search)
	return c, nil
}

var _ io.Closer = (*Client)(nil)

// Close stops the browser and closes idle connections.
func (c *Client) Close() error {
	return errors.Join(c.browser.Close(), c.local.Close(), c.searcher.Close())
}

// scraper returns the provider that reads one page.
func (c *Client) scraper() page.Scraper { return c.local }

// crawler returns the provider that reads a site.
func (c *Client) crawler() page.Crawler { return c.local }

// Scrape implements web.scrape.
func (c *Client) Scrape(ctx context.Context, _ *tea.Request, p page.ScrapeParams) (*page.Page, error) {
	return c.scraper().Scrape(ctx, p)
}

// Crawl implements web.crawl.
func (c *Client) Crawl(ctx context.Context, req *tea.Request, p page.CrawlParams) (*page.CrawlResult, error) {
	return c.crawler().Crawl(ctx, req, p)
}

// Search implements web.search.
func (c *Client) Search(ctx context.Context, req *tea.Request, p page.SearchParams) (*page.SearchResult, error) {
	return c.searcher.Search(ctx, req, p)
}

// Extract implements web.extract.
func (c *Client) Extract(_ context.Context, _ *tea.Request, _ page.ExtractParams) (*page.ExtractResult, error) {
	return nil, tea.Errorf(tea.DependencyMissing, "web.extract has no provider yet")
}

package web_test

import (
	"net/http/httptest"
	"testing"

	"github.com/the-edge-agent/tea/plugins/web"
	"github.com/the-edge-agent/tea/plugins/web/internal/testsite"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// The samples are calls that fail without a network, and calls of a server that
// the test starts.
func TestConformance(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(testsite.Handler())
	t.Cleanup(site.Close)
	settings := map[string]any{"web": map[string]any{"allow_private": true, "host_delay": 0, "cache_max_bytes": 0}}
	teatest.Conformance(t, web.Bundle(),
		teatest.Request{Action: "web.scrape", Settings: settings, Params: map[string]any{"url": site.URL + "/redirect/2", "formats": []any{"markdown", "links"}}},
		teatest.Request{Action: "web.crawl", Settings: settings, Params: map[string]any{"url": site.URL, "limit": 4}, Call: tea.Call{IdempotencyKey: "k"}},
		teatest.Request{Action: "web.scrape", Params: map[string]any{"url": "http://127.0.0.1:1/"}},
		teatest.Request{Action: "web.crawl", Params: map[string]any{"url": "ftp://example.com/"}},
		teatest.Request{Action: "web.search", Params: map[string]any{"query": 7}},
		teatest.Request{Action: "web.extract", Params: map[string]any{"url": "http://127.0.0.1:1/"}},
	)
}

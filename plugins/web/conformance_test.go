package web_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/web"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// The samples are calls that fail without a network.
func TestConformance(t *testing.T) {
	t.Parallel()
	teatest.Conformance(t, web.Bundle(),
		teatest.Request{Action: "web.scrape", Params: map[string]any{"url": "http://127.0.0.1:1/"}},
		teatest.Request{Action: "web.crawl", Params: map[string]any{"url": "ftp://example.com/"}},
		teatest.Request{Action: "web.search", Params: map[string]any{"query": 7}},
		teatest.Request{Action: "web.extract", Params: map[string]any{"url": "http://127.0.0.1:1/"}},
	)
}

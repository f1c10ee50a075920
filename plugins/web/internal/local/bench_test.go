package local_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/testsite"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// Pages reads the pages of the test site one after the other, from the request
// to the Markdown, and by a crawl with its notes.
func BenchmarkPages(b *testing.B) {
	pages := testsite.Pages()
	rate := func(b *testing.B, n int) {
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "pages/s")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/page")
	}
	b.Run("scrape", func(b *testing.B) {
		site, r := serve(b, testsite.Handler()), open(b, nil)
		n := 0
		for b.Loop() {
			if _, err := scrape(b, r, site.URL+pages[n%len(pages)].Path); err != nil {
				b.Fatal(err)
			}
			n++
		}
		rate(b, n)
	})
	b.Run("crawl", func(b *testing.B) {
		site, r := serve(b, testsite.Handler()), open(b, nil)
		one := 1
		n := 0
		for b.Loop() {
			result, err := crawl(b, r, new(teatest.Host), page.CrawlParams{URL: site.URL, MaxDepth: &one})
			if err != nil {
				b.Fatal(err)
			}
			n += result.TotalPages
		}
		rate(b, n)
	})
}

package local_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/web/internal/local"
	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// A crawl has at most heapPerByte bytes in use for each byte that a response can
// have, and spareHeap. The guide names them.
const (
	maxBody     = 1 << 20
	heapPerByte = 16
	spareHeap   = 48 << 20
)

// peakHeap returns the largest live heap while f runs, as each garbage
// collection finds it. It must not run in parallel with other tests.
func peakHeap(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	var peak atomic.Uint64
	var done atomic.Bool
	var watch func()
	watch = func() {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		peak.Store(max(peak.Load(), sample[0].Value.Uint64()))
		if !done.Load() {
			runtime.SetFinalizer(new(*int), func(**int) { watch() })
		}
	}
	watch()
	f()
	done.Store(true)
	return peak.Load()
}

// A crawl of pages that are made of as many links, elements, attributes or
// comments as a response can have keeps to a bound.
func TestMemoryOfHostileSite(t *testing.T) { //nolint:paralleltest // measures the memory of the process
	const n = 20_000
	for name, part := range map[string]string{
		"links":       "<a href=/%[1]d>link %[1]d</a>\n",
		"elements":    strings.Repeat("<b></b>x<p>", 4),
		"comments":    strings.Repeat("<!>", 16),
		"end tags":    strings.Repeat("</p>x", 10),
		"attributes":  "<p " + strings.Repeat("a%[1]d b ", 3) + ">",
		"one element": strings.Repeat(" c", 25),
		"robots":      "<a href=/%[1]d>%[1]d</a>",
		"sitemap":     "<p>%[1]d",
	} {
		site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out := bufio.NewWriter(w)
			defer out.Flush()
			repeat := func(format string) {
				for i := range n {
					line := format
					if strings.Contains(format, "%") {
						line = fmt.Sprintf(format, i)
					}
					if _, err := io.WriteString(out, line); err != nil {
						return
					}
				}
			}
			switch {
			case r.URL.Path == "/robots.txt" && name == "robots":
				io.WriteString(out, "User-agent: *\n")
				repeat("Disallow: /a%d\n")
			case r.URL.Path == "/sitemap.xml" && name == "sitemap":
				repeat("<loc>/" + strings.Repeat("x", 40) + "%d</loc>")
			case r.URL.Path == "/robots.txt" || r.URL.Path == "/sitemap.xml":
				http.NotFound(w, r)
			default:
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(out, "<title>%s</title><p>%[1]s</p><a href=/next>next</a><i", r.URL.Path)
				if name != "one element" {
					io.WriteString(out, ">")
				}
				repeat(part)
			}
		}))
		r := open(t, func(s *local.Settings) { s.MaxBodyBytes = maxBody })
		var result *page.CrawlResult
		var err error
		begin := time.Now()
		peak := peakHeap(func() { result, err = crawl(t, r, new(teatest.Host), page.CrawlParams{URL: site.URL, Limit: 2}) })
		t.Logf("%s: %d MiB, %s", name, peak>>20, time.Since(begin))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(result.Pages) != 2 {
			t.Errorf("%s: %d pages, %v", name, len(result.Pages), result.Failed)
		}
		if limit := uint64(heapPerByte*maxBody + spareHeap); peak > limit {
			t.Errorf("%s: %d MiB are in use, want at most %d", name, peak>>20, limit>>20)
		}
	}
}

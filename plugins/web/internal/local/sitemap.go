package local

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/the-edge-agent/tea/plugins/web/internal/safenet"
)

const (
	// maxSitemaps bounds the files that are read for one crawl, and
	// maxSitemapURLs the addresses that are taken from them.
	maxSitemaps    = 20
	maxSitemapURLs = 50_000
)

// readSitemaps returns the addresses in the sitemaps that robots.txt names, or
// in /sitemap.xml. Files that cannot be read are left out.
func (c *crawl) readSitemaps(ctx context.Context, start *url.URL, rules *robots) []string {
	queue := rules.sitemaps
	if len(queue) == 0 {
		queue = []string{(&url.URL{Scheme: start.Scheme, Host: start.Host, Path: "/sitemap.xml"}).String()}
	}
	var found []string
	seen := map[string]bool{}
	for read := 0; len(queue) > 0 && read < maxSitemaps && len(found) < maxSitemapURLs; {
		file, err := safenet.ParseURL(queue[0])
		queue = queue[1:]
		if err != nil || seen[file.String()] {
			continue
		}
		seen[file.String()] = true
		read++
		limited, cancel := context.WithTimeout(ctx, c.r.timeout)
		resp, err := c.r.fetch(limited, file, fetchOptions{delay: c.delay(rules), limit: c.r.maxBody})
		cancel()
		if err != nil {
			continue
		}
		pages, files := parseSitemap(resp.body, c.r.maxBody)
		found = append(found, pages[:min(len(pages), maxSitemapURLs-len(found))]...)
		queue = append(queue, files...)
	}
	return found
}

// parseSitemap returns the addresses of pages and of further sitemaps. It reads
// what it can of a file that is cut off or not valid.
func parseSitemap(body []byte, limit int64) (pages, files []string) {
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, nil
		}
		body, _ = io.ReadAll(io.LimitReader(unpacked, limit)) // a part has addresses too
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = charset.NewReaderLabel
	d.Strict = false
	isIndex := false
	for {
		token, err := d.Token()
		if err != nil {
			return pages, files
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch element.Name.Local {
		case "sitemapindex":
			isIndex = true
		case "loc":
			var text string
			if d.DecodeElement(&text, &element) != nil {
				return pages, files
			}
			if text = strings.TrimSpace(text); text == "" || strings.Contains(element.Name.Space, "image") {
				continue
			}
			if isIndex {
				files = append(files, text)
			} else {
				pages = append(pages, text)
			}
		}
	}
}

package local

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

const (
	// maxSitemaps bounds the files that are read for one crawl, maxSitemapFiles the files
	// that they refer to, and maxSitemapURLs the addresses that are taken from them.
	maxSitemaps     = 20
	maxSitemapFiles = 1000
	maxSitemapURLs  = 50_000
)

// readSitemaps calls use for the addresses in the sitemaps that robots.txt names, or in
// /sitemap.xml, which need not exist. The notes name unreadable files.
func (c *crawl) readSitemaps(ctx context.Context, start *url.URL, rules *robots, use func(link string)) (notes []string) {
	queue := rules.sitemaps
	if len(queue) == 0 {
		queue = []string{(&url.URL{Scheme: start.Scheme, Host: start.Host, Path: "/sitemap.xml"}).String()}
	}
	seen := map[string]bool{}
	found := 0
	for read := 0; len(queue) > 0; {
		if read >= maxSitemaps || found >= maxSitemapURLs {
			notes = append(notes, fmt.Sprintf("%d sitemaps were not read", len(queue)))
			break
		}
		name := queue[0]
		queue = queue[1:]
		file, err := safenet.ParseURL(name)
		if err == nil && seen[file.String()] {
			continue
		}
		var resp *response
		if err == nil {
			seen[file.String()] = true
			read++
			resp, err = c.readSitemap(ctx, file, rules)
		}
		if err != nil {
			if len(rules.sitemaps) > 0 {
				notes = append(notes, "a sitemap could not be read: "+tea.AsError(err).Message)
			}
			continue
		}
		pages, files := parseSitemap(resp.body, c.r.maxBody)
		if resp.cut {
			notes = append(notes, fmt.Sprintf("only the first %d bytes of the sitemap %s were read", c.r.maxBody, file))
		}
		for _, link := range pages[:min(len(pages), maxSitemapURLs-found)] {
			use(link)
			found++
		}
		queue = append(queue, files[:max(0, min(len(files), maxSitemapFiles-len(queue)))]...)
	}
	return notes
}

func (c *crawl) readSitemap(ctx context.Context, file *url.URL, rules *robots) (*response, error) {
	if err := c.r.pace.wait(ctx, file.Host, c.delay(rules)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.r.timeout)
	defer cancel()
	return c.r.fetch(ctx, file, fetchOptions{delay: c.delay(rules), limit: c.r.maxBody, cut: true, paced: true})
}

// parseSitemap returns the addresses of pages and of further sitemaps. It reads as much
// as possible of a truncated or invalid file.
func parseSitemap(body []byte, limit int64) (pages, files []string) {
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, nil
		}
		body, _ = io.ReadAll(io.LimitReader(unpacked, limit)) // a truncated file has addresses, too
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = func(label string, input io.Reader) (io.Reader, error) {
		if utf8.Valid(body) { // as in pages, the declaration may be wrong
			return input, nil
		}
		return charset.NewReaderLabel(label, input)
	}
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
			if text = strings.TrimSpace(text); text == "" || len(text) > maxCrawlURL || strings.Contains(element.Name.Space, "image") {
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

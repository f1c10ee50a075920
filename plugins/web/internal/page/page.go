package page

import (
	"context"
	"encoding/json"
	"net/url"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Format is the format in which a page is returned.
type Format string

// The formats.
const (
	Markdown   Format = "markdown"
	HTML       Format = "html"
	Text       Format = "text"
	Links      Format = "links"
	Meta       Format = "metadata"
	Screenshot Format = "screenshot"
)

// JSONSchema lists the formats.
func (Format) JSONSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"string"}, Enum: []any{"markdown", "html", "text", "links", "metadata", "screenshot"}}
}

// Renderer runs a page in a browser. It is safe for concurrent use. Its errors
// are *tea.Error; dependency_missing if there is no browser.
type Renderer interface {
	Render(ctx context.Context, u *url.URL, o RenderOptions) (*Rendered, error)
}

// RenderOptions are the options of [Renderer]. The context sets the time limit.
type RenderOptions struct {
	WaitFor    WaitFor
	Screenshot bool
	FullPage   bool // the screenshot is of the whole page
}

// Rendered is a page after its JavaScript has run.
type Rendered struct {
	URL         *url.URL // after redirects
	Status      int
	ContentType string
	HTML        []byte // in UTF-8; nil for a file that the browser does not display
	Screenshot  []byte // PNG, if it was requested
	Notes       []string
}

// ReadOptions select what is read of a page; all actions that read pages share
// them.
type ReadOptions struct {
	Formats         []Format `json:"formats,omitempty" doc:"forms in which a page is returned; default markdown. The metadata is always returned"`
	OnlyMainContent *bool    `json:"only_main_content,omitempty" doc:"leave out navigation, headers, footers, sidebars and advertisements; default true"`
	Render          bool     `json:"render,omitempty" doc:"run the page's JavaScript in a headless Chromium before it is read"`
	FullPage        bool     `json:"full_page,omitempty" doc:"with the format screenshot: picture of the whole page, not only of its beginning"`
	WaitFor         WaitFor  `json:"wait_for,omitzero" doc:"with render: a CSS selector to wait for, or a number of milliseconds to wait"`
	Timeout         float64  `json:"timeout,omitempty" minimum:"0.1" maximum:"3600" doc:"limit in seconds for one page, waiting and redirects included; default settings.web.timeout"`
}

// Has reports whether the page should be returned in a format.
func (o ReadOptions) Has(f Format) bool {
	if len(o.Formats) == 0 {
		return f == Markdown
	}
	for _, format := range o.Formats {
		if format == f {
			return true
		}
	}
	return false
}

// MainOnly reports whether only the main content is returned.
func (o ReadOptions) MainOnly() bool { return o.OnlyMainContent == nil || *o.OnlyMainContent }

// Check returns a validation_error if an option has no effect without another one.
// isRendered reports whether a service renders all pages.
func (o ReadOptions) Check(isRendered bool) error {
	switch {
	case o.FullPage && !o.Has(Screenshot):
		return tea.Errorf(tea.ValidationError, "full_page needs the format screenshot")
	case o.WaitFor.Milliseconds < 0:
		return tea.Errorf(tea.ValidationError, "wait_for must not be negative")
	case o.WaitFor != (WaitFor{}) && !isRendered && !o.Render && !o.Has(Screenshot):
		return tea.Errorf(tea.ValidationError, "wait_for needs render: true")
	}
	return nil
}

// ScrapeParams are the parameters of web.scrape.
type ScrapeParams struct {
	URL string `json:"url" minLength:"1" maxLength:"8192" doc:"address of the page, http or https"`
	ReadOptions
}

// WaitFor is a CSS selector or a number of milliseconds.
type WaitFor struct {
	Selector     string
	Milliseconds int64
}

// JSONSchema describes both forms.
func (WaitFor) JSONSchema() *schema.Schema {
	return &schema.Schema{AnyOf: []*schema.Schema{{Type: schema.Types{"string"}}, {Type: schema.Types{"integer"}}}}
}

// UnmarshalJSON reads both forms.
func (w *WaitFor) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &w.Milliseconds) == nil {
		return nil
	}
	return json.Unmarshal(data, &w.Selector)
}

// Page is the result of web.scrape, and a page of web.crawl.
type Page struct {
	Success    bool     `json:"success" doc:"always true"`
	URL        string   `json:"url" doc:"address of the page, after redirects"`
	Markdown   string   `json:"markdown,omitempty" doc:"the content as Markdown, with absolute links"`
	HTML       string   `json:"html,omitempty" doc:"the content as HTML"`
	Text       string   `json:"text,omitempty" doc:"the content as plain text"`
	Links      []Link   `json:"links,omitempty" doc:"the links of the whole page, each address once"`
	Screenshot string   `json:"screenshot,omitempty" doc:"picture of the page: PNG in Base64"`
	Metadata   Metadata `json:"metadata" doc:"what the page says about itself"`
	Cached     bool     `json:"cached,omitempty" doc:"true if the server confirmed that the page in the cache is current"`
	Notes      []string `json:"notes,omitempty" doc:"what was cut, skipped or could not be read"`
}

// Link is a link of a page.
type Link struct {
	URL  string `json:"url" doc:"absolute address"`
	Text string `json:"text,omitempty" doc:"the link's text"`
}

// Metadata describes a page.
type Metadata struct {
	Title       string `json:"title,omitempty" doc:"the title"`
	Description string `json:"description,omitempty" doc:"the summary"`
	Language    string `json:"language,omitempty" doc:"language tag, such as en or pt-BR"`
	StatusCode  int    `json:"status_code" doc:"HTTP status"`
	Canonical   string `json:"canonical,omitempty" doc:"the address that the page names as its own"`
	Published   string `json:"published,omitempty" doc:"date of publication: RFC 3339, without a zone if the page names none, or YYYY-MM-DD"`
	Modified    string `json:"modified,omitempty" doc:"date of the last change, in the same form"`
	Author      string `json:"author,omitempty" doc:"the author"`
	SiteName    string `json:"site_name,omitempty" doc:"name of the site"`
	Image       string `json:"image,omitempty" doc:"address of the page's picture"`
	ContentType string `json:"content_type,omitempty" doc:"media type, such as text/html"`
}

// CrawlParams are the parameters of web.crawl.
type CrawlParams struct {
	URL      string   `json:"url" minLength:"1" maxLength:"8192" doc:"address of the first page, http or https"`
	Limit    int      `json:"limit,omitempty" minimum:"1" maximum:"10000" default:"100" doc:"number of pages that are read"`
	MaxDepth *int     `json:"max_depth,omitempty" minimum:"0" maximum:"100" default:"3" doc:"number of links between the first page and a page"`
	Include  []string `json:"include,omitempty" doc:"patterns of paths to read, such as /docs/*; * matches any characters, a trailing $ the end; default all"`
	Exclude  []string `json:"exclude,omitempty" doc:"patterns of paths not to read; they override include"`
	SameHost *bool    `json:"same_host,omitempty" default:"true" doc:"read pages of the first page's host only"`
	JobID    string   `json:"job_id,omitempty" maxLength:"100" doc:"continue the crawl that had this job_id in another run"`
	Delay    *float64 `json:"delay,omitempty" minimum:"0" maximum:"60" doc:"seconds between two requests to a host; default settings.web.host_delay. A longer Crawl-delay in robots.txt overrides it"`
	ReadOptions
}

// CrawlResult is the result of web.crawl.
type CrawlResult struct {
	Success    bool           `json:"success" doc:"always true"`
	Pages      []*Page        `json:"pages" doc:"the pages, in the order in which they were found"`
	TotalPages int            `json:"total_pages" doc:"number of pages"`
	JobID      string         `json:"job_id" doc:"identifies the crawl in logs and at the provider; the parameter job_id continues it in another run"`
	Failed     []FailedPage   `json:"failed,omitempty" doc:"pages that could not be read"`
	Skipped    map[string]int `json:"skipped,omitempty" doc:"number of links that were not followed, by reason"`
	Notes      []string       `json:"notes,omitempty" doc:"what ended the crawl early, and what was cut"`
}

// FailedPage is a page that could not be read.
type FailedPage struct {
	URL   string        `json:"url" doc:"address of the page"`
	Error string        `json:"error" doc:"the problem"`
	Type  tea.ErrorType `json:"error_type" doc:"type of the error"`
}

// SearchParams are the parameters of web.search.
type SearchParams struct {
	Query      string `json:"query" minLength:"1" maxLength:"2000" doc:"what to search for"`
	NumResults int    `json:"num_results,omitempty" minimum:"1" maximum:"100" default:"10" doc:"number of results"`
	Recency    string `json:"recency,omitempty" enum:"hour,day,week,month,year" doc:"greatest age of the results"`
}

// SearchResult is the result of web.search.
type SearchResult struct {
	Success      bool     `json:"success" doc:"always true"`
	Results      []Found  `json:"results" doc:"the results, best first"`
	Query        string   `json:"query" doc:"the query"`
	TotalResults int      `json:"total_results" doc:"number of results that are returned"`
	Answer       string   `json:"answer,omitempty" doc:"the provider's answer to the query, if it has one"`
	Notes        []string `json:"notes,omitempty" doc:"what was cut, skipped or not supported by the provider"`
}

// Found is one result of a search.
type Found struct {
	Title    string `json:"title" doc:"title of the page"`
	URL      string `json:"url" doc:"address of the page"`
	Snippet  string `json:"snippet,omitempty" doc:"part of the page"`
	Position int    `json:"position" doc:"rank, from 1"`
}

// ExtractParams are the parameters of web.extract.
type ExtractParams struct {
	URL    string         `json:"url" minLength:"1" maxLength:"8192" doc:"address of the page, http or https"`
	Schema map[string]any `json:"schema" doc:"JSON Schema of the data"`
	Prompt string         `json:"prompt,omitempty" maxLength:"20000" doc:"instructions for the model"`
	Model  string         `json:"model,omitempty" doc:"the model; default settings.llm.model"`
	ReadOptions
}

// ExtractResult is the result of web.extract.
type ExtractResult struct {
	Success  bool     `json:"success" doc:"always true"`
	URL      string   `json:"url" doc:"address of the page, after redirects"`
	Data     any      `json:"data" doc:"the data, valid by the schema"`
	Metadata Metadata `json:"metadata" doc:"what the page says about itself"`
	Notes    []string `json:"notes,omitempty" doc:"what was cut, skipped or could not be read"`
}

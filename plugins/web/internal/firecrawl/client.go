package firecrawl

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/web/internal/extract"
	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/service"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
	"github.com/the-edge-agent/tea/sdk/x/httpstatus"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// Settings are the settings under settings.web.firecrawl.
type Settings struct {
	Version string `json:"version,omitempty" enum:"v1,v2" doc:"version of the API; default v2"`
	service.Settings
}

// operator is the address of the hosted Firecrawl API.
const operator = "https://api.firecrawl.dev"

// Client reads pages and sites through the API. It is safe for concurrent use. The
// caller closes it.
type Client struct {
	service *service.Service
	version string
	hosted  bool // by the operator, who requires a key
	guard   *safenet.Guard
	images  *http.Transport
	poll    time.Duration
}

// Open returns a client. It refuses addresses that guard does not allow.
func Open(s Settings, guard *safenet.Guard) *Client {
	return &Client{
		service: service.Open("firecrawl", "settings.web.firecrawl", operator, s.Settings),
		version: cmp.Or(s.Version, "v2"), hosted: s.APIBase == "", guard: guard, images: guard.Transport(), poll: pollInterval,
	}
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.images.CloseIdleConnections()
	return c.service.Close()
}

// server returns the server for the requests of one call.
func (c *Client) server(req *tea.Request) (*httpapi.Server, error) {
	key, err := c.service.APIKey()
	if err != nil && c.hosted {
		return nil, err
	}
	if key == "" {
		return c.service.Server(req, nil)
	}
	return c.service.Server(req, service.Bearer(key))
}

// checkURL normalises an address and refuses one that is not public. The server
// resolves names and must protect its own network.
func (c *Client) checkURL(address string) (string, error) {
	u, err := safenet.ParseURL(address)
	if err != nil {
		return "", err
	}
	return u.String(), c.guard.CheckHost(u.Hostname())
}

// options returns the options of a scrape in the form of the API.
func (c *Client) options(o page.ReadOptions) map[string]any {
	formats := []any{}
	for _, f := range []page.Format{page.Markdown, page.HTML, page.Links, page.Screenshot} {
		if o.Has(f) || f == page.HTML && o.Has(page.Text) {
			formats = append(formats, c.format(f, o))
		}
	}
	if len(formats) == 0 {
		formats = append(formats, string(page.Markdown)) // only the metadata, which every answer has
	}
	options := map[string]any{"formats": formats, "onlyMainContent": o.MainOnly()}
	if o.Timeout > 0 {
		options["timeout"] = int64(o.Timeout * 1000)
	}
	switch {
	case o.WaitFor.Selector != "":
		options["actions"] = []any{map[string]any{"type": "wait", "selector": o.WaitFor.Selector}}
	case o.WaitFor.Milliseconds > 0:
		options["waitFor"] = o.WaitFor.Milliseconds
	}
	return options
}

// format returns a format in the form of the API.
func (c *Client) format(f page.Format, o page.ReadOptions) any {
	switch {
	case f != page.Screenshot || !o.FullPage:
		return string(f)
	case c.version == "v1":
		return "screenshot@fullPage"
	}
	return map[string]any{"type": "screenshot", "fullPage": true}
}

// scrapeMargin is the time for the answer beyond the time for the page.
const scrapeMargin = 15 * time.Second

// Scrape reads one page.
func (c *Client) Scrape(ctx context.Context, req *tea.Request, p page.ScrapeParams) (*page.Page, error) {
	address, err := c.checkURL(p.URL)
	if err != nil {
		return nil, err
	}
	if err := p.Check(true); err != nil {
		return nil, err
	}
	server, err := c.server(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.service.Expire(ctx, time.Duration(p.Timeout*float64(time.Second))+scrapeMargin)
	defer cancel()
	body := c.options(p.ReadOptions)
	body["url"] = address
	var answer struct {
		envelope
		Data *document `json:"data"`
	}
	if err := c.send(ctx, server, httpapi.Request{Path: c.version + "/scrape", Body: body}, &answer, &answer.envelope); err != nil {
		return nil, err
	}
	if answer.Data == nil {
		return nil, tea.Errorf(tea.ConnectionError, "firecrawl sent no page for %s", address)
	}
	if err := answer.Data.failure(address); err != nil {
		return nil, err
	}
	result, err := c.toPage(ctx, answer.Data, address, p.ReadOptions)
	if err == nil && answer.Warning != "" {
		result.Notes = append(result.Notes, answer.Warning)
	}
	return result, err
}

// envelope holds the common members of all answers.
type envelope struct {
	Success *bool  `json:"success"`
	Error   string `json:"error"`
	Warning string `json:"warning"`
}

// failure returns the error in an answer with status 200, if any.
func (e *envelope) failure() error {
	if e.Error == "" && (e.Success == nil || *e.Success) {
		return nil
	}
	return tea.Errorf(tea.ConnectionError, "firecrawl: %s", cmp.Or(e.Error, "the request failed without a reason"))
}

// send makes a request and decodes its answer; e is the answer's envelope.
func (c *Client) send(ctx context.Context, server *httpapi.Server, r httpapi.Request, answer any, e *envelope) error {
	err := server.Do(ctx, r, func(reply httpapi.Reply) error { return reply.Decode(answer, "an answer of Firecrawl") })
	if err != nil {
		return err
	}
	return e.failure()
}

// text is a text that sites may define more than once.
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = text(one)
		return nil
	}
	var list []string
	_ = json.Unmarshal(data, &list) // other kinds of values are not texts
	*t = text(strings.Join(list, ", "))
	return nil
}

// document is a page in an answer.
type document struct {
	Markdown   string   `json:"markdown"`
	HTML       string   `json:"html"`
	Links      []string `json:"links"`
	Screenshot string   `json:"screenshot"`
	Warning    string   `json:"warning"`
	Metadata   struct {
		Title       text `json:"title"`
		Description text `json:"description"`
		Language    text `json:"language"`
		SourceURL   text `json:"sourceURL"`
		URL         text `json:"url"`
		StatusCode  int  `json:"statusCode"`
		Error       text `json:"error"`
		ContentType text `json:"contentType"`
		Published   text `json:"publishedTime"`
		Modified    text `json:"modifiedTime"`
		Author      text `json:"author"`
		SiteName    text `json:"ogSiteName"`
		Image       text `json:"ogImage"`
	} `json:"metadata"`
}

// failure returns the error of a page whose site answered with one, in the form of the
// local reader.
func (d *document) failure(address string) error {
	status := d.Metadata.StatusCode
	if status < 400 {
		return nil
	}
	kind, retryable := httpstatus.ErrorType(status)
	e := tea.Errorf(kind, "GET %s: status %d %s", address, status, cmp.Or(string(d.Metadata.Error), http.StatusText(status)))
	e.Retryable = retryable
	e.Details = map[string]any{"status": int64(status), "url": address}
	return e
}

// toPage converts a page to the requested formats.
func (c *Client) toPage(ctx context.Context, d *document, address string, o page.ReadOptions) (*page.Page, error) {
	m := d.Metadata
	p := &page.Page{Success: true, URL: cmp.Or(string(m.URL), string(m.SourceURL), address), Metadata: page.Metadata{
		Title: string(m.Title), Description: string(m.Description), Language: string(m.Language), StatusCode: cmp.Or(m.StatusCode, http.StatusOK),
		Published: string(m.Published), Modified: string(m.Modified), Author: string(m.Author), SiteName: string(m.SiteName),
		Image: string(m.Image), ContentType: string(m.ContentType),
	}}
	if o.Has(page.Markdown) {
		p.Markdown = d.Markdown
	}
	if o.Has(page.HTML) {
		p.HTML = d.HTML
	}
	if o.Has(page.Text) {
		u, err := safenet.ParseURL(p.URL)
		if err != nil {
			return nil, err
		}
		doc, err := extract.Parse(ctx, extract.Source{URL: u, ContentType: "text/html; charset=utf-8", Body: []byte(d.HTML)})
		if err != nil {
			return nil, err
		}
		p.Text = doc.Content(false).Text()
	}
	if o.Has(page.Links) {
		for _, link := range d.Links {
			p.Links = append(p.Links, page.Link{URL: link})
		}
	}
	if o.Has(page.Screenshot) {
		picture, err := c.screenshot(ctx, d.Screenshot)
		if err != nil {
			p.Notes = append(p.Notes, "the screenshot was not loaded: "+tea.AsError(err).Message)
		}
		p.Screenshot = picture
	}
	if d.Warning != "" {
		p.Notes = append(p.Notes, d.Warning)
	}
	return p, nil
}

// maxPicture bounds a screenshot in bytes.
const maxPicture = 16 << 20

// screenshot returns a screenshot in Base64. The server sends the screenshot or its
// address.
func (c *Client) screenshot(ctx context.Context, source string) (string, error) {
	if source == "" {
		return "", tea.Errorf(tea.ConnectionError, "firecrawl sent none")
	}
	if _, data, found := strings.Cut(source, ";base64,"); found && strings.HasPrefix(source, "data:") {
		return data, nil
	}
	u, err := safenet.ParseURL(source)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := c.images.RoundTrip(req) // does not follow redirects
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxPicture+1))
	if err == nil && len(data) > maxPicture {
		err = fmt.Errorf("it has more than %d bytes", maxPicture)
	}
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

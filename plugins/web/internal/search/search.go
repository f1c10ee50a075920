package search

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"strings"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/service"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// key is the path of the settings, for messages.
const key = "settings.web.search"

// Settings are the settings under settings.web.search.
type Settings struct {
	Provider string `json:"provider,omitempty" enum:"searxng,brave,tavily,perplexity" doc:"the service that searches"`
	Answer   *bool  `json:"answer,omitempty" doc:"let tavily and perplexity answer the query too; default true"`
	Model    string `json:"model,omitempty" doc:"perplexity: the model that answers; default sonar"`
	service.Settings
}

// engine is a search service. ask makes the request with a number, from 0 on, and adds
// its results to c. It returns the number of results that the service sent; 0 if there
// are no more.
type engine interface {
	ask(ctx context.Context, req *tea.Request, p page.SearchParams, number int, c *collector) (sent int, err error)
}

// Searcher implements web.search. It is safe for concurrent use. The caller
// closes it.
type Searcher struct {
	service *service.Service
	engine  engine
}

// Open returns the searcher for the settings; nil if they name no provider.
func Open(s Settings) *Searcher {
	open := func(base string) *service.Service { return service.Open(s.Provider, key, base, s.Settings) }
	answer := s.Answer == nil || *s.Answer
	switch s.Provider {
	case "searxng":
		c := open("")
		return &Searcher{c, &searxng{c}}
	case "brave":
		c := open("https://api.search.brave.com")
		return &Searcher{c, &brave{c}}
	case "tavily":
		c := open("https://api.tavily.com")
		return &Searcher{c, &tavily{c, answer}}
	case "perplexity":
		c := open("https://api.perplexity.ai")
		if answer {
			return &Searcher{c, &sonar{c, s.Model}}
		}
		return &Searcher{c, &perplexity{c}}
	}
	return nil
}

// Close closes idle connections.
func (s *Searcher) Close() error {
	if s == nil {
		return nil
	}
	return s.service.Close()
}

// maxRequests bounds the requests of one search.
const maxRequests = 10

// Search searches. It requests more results until there are enough, or the service has
// no more.
func (s *Searcher) Search(ctx context.Context, req *tea.Request, p page.SearchParams) (*page.SearchResult, error) {
	if s == nil {
		return nil, tea.Errorf(tea.ValidationError, "no service to search with is set: set %s.provider to searxng, brave, tavily or perplexity", key)
	}
	p.Query = strings.TrimSpace(p.Query)
	if p.Query == "" {
		return nil, tea.Errorf(tea.ValidationError, "the query is empty")
	}
	ctx, cancel := s.service.Expire(ctx, 0)
	defer cancel()
	c := &collector{limit: p.NumResults, seen: map[string]bool{}, result: page.SearchResult{Success: true, Query: p.Query, Results: []page.Found{}}}
	for number := range maxRequests {
		before := len(c.result.Results)
		sent, err := s.engine.ask(ctx, req, p, number, c)
		if err != nil {
			if number == 0 {
				return nil, err
			}
			// The results so far are useful.
			c.note("the search ended early: %s", tea.AsError(err).Message)
			break
		}
		if sent == 0 || len(c.result.Results) >= p.NumResults || len(c.result.Results) == before {
			break
		}
	}
	if c.skipped > 0 {
		c.note("%d results without an http or https address were skipped", c.skipped)
	}
	if c.cut > 0 {
		c.note("the snippets of %d results were cut to %d bytes", c.cut, maxSnippet)
	}
	c.result.TotalResults = len(c.result.Results)
	return &c.result, nil
}

// noResults is the error of an answer without a list of results, not even an empty
// one.
func noResults(s *service.Service) error {
	return tea.Errorf(tea.ConnectionError, "the answer of %s has no results; check %s.api_base", s.Name, s.Key)
}

// collector collects the distinct results of a search.
type collector struct {
	limit   int
	result  page.SearchResult
	seen    map[string]bool
	skipped int
	cut     int
}

// maxSnippet and maxTitle bound the texts of a result, in bytes.
const (
	maxSnippet = 8000
	maxTitle   = 1000
)

// add adds a result unless there are enough results.
func (c *collector) add(title, address, snippet string) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		c.skipped++
		return
	}
	if len(c.result.Results) >= c.limit || c.seen[u.String()] {
		return
	}
	c.seen[u.String()] = true
	text := plain(snippet)
	if len(text) > maxSnippet {
		text = text[:value.WholeRunes(text[:maxSnippet])]
		c.cut++
	}
	name := plain(title)
	if len(name) > maxTitle {
		name = name[:value.WholeRunes(name[:maxTitle])]
	}
	c.result.Results = append(c.result.Results, page.Found{Title: name, URL: u.String(), Snippet: text, Position: len(c.result.Results) + 1})
}

// note adds a note once.
func (c *collector) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, known := range c.result.Notes {
		if known == text {
			return
		}
	}
	c.result.Notes = append(c.result.Notes, text)
}

// plain returns a text of a result with single spaces and without entities.
func plain(text string) string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(html.UnescapeString(text)), " "), "\ufffd")
}

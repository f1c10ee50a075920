package search

import (
	"cmp"
	"context"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/service"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// perplexity is the Search API of Perplexity, which only returns results.
type perplexity struct{ service *service.Service }

// perplexityMax is the maximum number of results; there is no second page.
const perplexityMax = 20

// perplexityFound is a result of both APIs.
type perplexityFound struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
}

func (x *perplexity) ask(ctx context.Context, req *tea.Request, p page.SearchParams, _ int, c *collector) (int, error) {
	if p.NumResults > perplexityMax {
		c.note("perplexity returns at most %d results", perplexityMax)
	}
	body := map[string]any{"query": p.Query, "max_results": min(p.NumResults, perplexityMax)}
	var answer struct {
		Results []perplexityFound `json:"results"`
	}
	if err := postPerplexity(ctx, x.service, req, p, "search", body, &answer); err != nil {
		return 0, err
	}
	if answer.Results == nil {
		return 0, noResults(x.service)
	}
	for _, r := range answer.Results {
		c.add(r.Title, r.URL, r.Snippet)
	}
	return 0, nil
}

// sonar is a model of Perplexity that searches and answers.
type sonar struct {
	service *service.Service
	model   string
}

func (s *sonar) ask(ctx context.Context, req *tea.Request, p page.SearchParams, _ int, c *collector) (int, error) {
	body := map[string]any{
		"model":    cmp.Or(s.model, "sonar"),
		"messages": []any{map[string]any{"role": "user", "content": p.Query}},
	}
	var answer struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
		Results   []perplexityFound `json:"search_results"`
		Citations []string          `json:"citations"` // of older versions
		Usage     struct {
			TotalTokens int64 `json:"total_tokens"`
			Cost        struct {
				Total float64 `json:"total_cost"`
			} `json:"cost"`
		} `json:"usage"`
	}
	if err := postPerplexity(ctx, s.service, req, p, "chat/completions", body, &answer); err != nil {
		return 0, err
	}
	if len(answer.Choices) == 0 {
		return 0, noResults(s.service)
	}
	for _, r := range answer.Results {
		c.add(r.Title, r.URL, r.Snippet)
	}
	if len(answer.Results) == 0 {
		for _, address := range answer.Citations {
			c.add("", address, "")
		}
	}
	c.result.Answer = answer.Choices[0].Message.Content
	// Ignore a spent budget: it fails the next request, and this result is complete.
	_ = req.Usage(ctx, tea.Usage{Tokens: answer.Usage.TotalTokens, USD: answer.Usage.Cost.Total})
	return 0, nil
}

func postPerplexity(ctx context.Context, s *service.Service, req *tea.Request, p page.SearchParams, path string, body map[string]any, into any) error {
	token, err := s.APIKey()
	if err != nil {
		return err
	}
	server, err := s.Server(req, service.Bearer(token))
	if err != nil {
		return err
	}
	if p.Recency != "" {
		body["search_recency_filter"] = p.Recency
	}
	return server.Post(ctx, path, body, func(reply httpapi.Reply) error { return reply.Decode(into, "search results") })
}

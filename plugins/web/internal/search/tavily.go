package search

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/service"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// tavily is the search of Tavily.
type tavily struct {
	service *service.Service
	answer  bool
}

// tavilyMax is the maximum number of results; there is no second page.
const tavilyMax = 20

func (t *tavily) ask(ctx context.Context, req *tea.Request, p page.SearchParams, _ int, c *collector) (int, error) {
	token, err := t.service.APIKey()
	if err != nil {
		return 0, err
	}
	server, err := t.service.Server(req, service.Bearer(token))
	if err != nil {
		return 0, err
	}
	if p.NumResults > tavilyMax {
		c.note("tavily returns at most %d results", tavilyMax)
	}
	body := map[string]any{"query": p.Query, "max_results": min(p.NumResults, tavilyMax), "include_answer": t.answer}
	if p.Recency == "hour" {
		c.note("tavily has no filter for the last hour; the results are of the last day")
		p.Recency = "day"
	}
	if p.Recency != "" {
		body["time_range"] = p.Recency
	}
	var answer struct {
		Answer  *string `json:"answer"`
		Results []struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
		} `json:"results"`
	}
	err = server.Post(ctx, "search", body, func(reply httpapi.Reply) error { return reply.Decode(&answer, "search results") })
	if err != nil {
		return 0, explainTavily(err)
	}
	if answer.Results == nil {
		return 0, noResults(t.service)
	}
	for _, r := range answer.Results {
		c.add(r.Title, r.URL, r.Content)
	}
	if answer.Answer != nil {
		c.result.Answer = *answer.Answer
	}
	return 0, nil
}

// explainTavily sets the type of a spent plan's error: Tavily answers with 432 and 433.
func explainTavily(err error) error {
	e := tea.AsError(err)
	if status := e.Details["status"]; status != int64(432) && status != int64(433) {
		return err
	}
	explained := *e
	explained.Type = tea.RateLimited
	return &explained
}

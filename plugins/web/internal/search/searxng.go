package search

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/service"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// searxng is an instance of SearXNG, or of searx, its predecessor.
type searxng struct{ service *service.Service }

// searxngAnswer is the answer of /search with format=json.
type searxngAnswer struct {
	Results []struct {
		URL     string `json:"url"`
		Title   string `json:"title"`
		Content string `json:"content"`
	} `json:"results"`
	Answers      []json.RawMessage `json:"answers"`
	Unresponsive [][]any           `json:"unresponsive_engines"`
}

func (s *searxng) ask(ctx context.Context, req *tea.Request, p page.SearchParams, number int, c *collector) (int, error) {
	var credential http.Header
	if s.service.HasKey() { // for a proxy in front of the instance
		token, err := s.service.APIKey()
		if err != nil {
			return 0, err
		}
		credential = service.Bearer(token)
	}
	server, err := s.service.Server(req, credential)
	if err != nil {
		return 0, err
	}
	query := url.Values{"q": {p.Query}, "format": {"json"}, "pageno": {strconv.Itoa(number + 1)}}
	if p.Recency == "hour" {
		c.note("searxng has no filter for the last hour; the results are of the last day")
		p.Recency = "day"
	}
	if p.Recency != "" {
		query.Set("time_range", p.Recency)
	}
	var answer searxngAnswer
	err = server.Do(ctx, httpapi.Request{Method: http.MethodGet, Path: "search", Query: query}, func(reply httpapi.Reply) error {
		return reply.Decode(&answer, "search results")
	})
	if err != nil {
		return 0, explainSearxng(err)
	}
	if answer.Results == nil {
		return 0, noResults(s.service)
	}
	for _, r := range answer.Results {
		c.add(r.Title, r.URL, r.Content)
	}
	for _, raw := range answer.Answers {
		if c.result.Answer == "" {
			c.result.Answer = answerText(raw)
		}
	}
	failed := unresponsive(answer.Unresponsive)
	if len(failed) > 0 && len(answer.Results) == 0 && number == 0 {
		return 0, tea.Errorf(tea.ConnectionError, "no search engine of the instance answered: %s", strings.Join(failed, ", "))
	}
	for _, name := range failed {
		c.note("a search engine of the instance did not answer: %s", name)
	}
	return len(answer.Results), nil
}

// explainSearxng adds the usual reason of a refusal.
func explainSearxng(err error) error {
	e := tea.AsError(err)
	if e.Details["status"] != int64(http.StatusForbidden) {
		return err
	}
	explained := *e
	explained.Message = "the instance refuses the request; its settings.yml must list json under search.formats, and its limiter must allow this client: " + e.Message
	return &explained
}

// answerText reads an answer: a string, or an object with one.
func answerText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return plain(text)
	}
	var object struct {
		Answer string `json:"answer"`
	}
	_ = json.Unmarshal(raw, &object) // other kinds of answers have no text
	return plain(object.Answer)
}

// unresponsive returns the failed engines with their reasons.
func unresponsive(list [][]any) []string {
	var names []string
	for _, entry := range list {
		switch len(entry) {
		case 0:
		case 1:
			names = append(names, fmt.Sprint(entry[0]))
		default:
			names = append(names, fmt.Sprintf("%v (%v)", entry[0], entry[1]))
		}
	}
	return names
}

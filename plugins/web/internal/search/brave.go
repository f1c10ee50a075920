package search

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/service"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// brave is the Brave Search API.
type brave struct{ service *service.Service }

// bravePage is the number of results per request.
const bravePage = 20

var braveFreshness = map[string]string{"hour": "pd", "day": "pd", "week": "pw", "month": "pm", "year": "py"}

// braveTags matches the tags around matches in titles and descriptions.
var braveTags = regexp.MustCompile(`</?strong>`)

func (b *brave) ask(ctx context.Context, req *tea.Request, p page.SearchParams, number int, c *collector) (int, error) {
	token, err := b.service.APIKey()
	if err != nil {
		return 0, err
	}
	server, err := b.service.Server(req, http.Header{"X-Subscription-Token": {token}})
	if err != nil {
		return 0, err
	}
	query := url.Values{
		"q": {p.Query}, "count": {strconv.Itoa(min(p.NumResults, bravePage))}, "offset": {strconv.Itoa(number)},
		"text_decorations": {"false"}, "result_filter": {"web"},
	}
	if p.Recency == "hour" {
		c.note("brave has no filter for the last hour; the results are of the last day")
	}
	if p.Recency != "" {
		query.Set("freshness", braveFreshness[p.Recency])
	}
	var answer struct {
		Query *struct {
			More *bool `json:"more_results_available"`
		} `json:"query"`
		Web struct {
			Results []struct {
				Title       string `json:"title"`
				URL         string `json:"url"`
				Description string `json:"description"`
			} `json:"results"`
		} `json:"web"`
	}
	err = server.Do(ctx, httpapi.Request{Method: http.MethodGet, Path: "res/v1/web/search", Query: query}, func(reply httpapi.Reply) error {
		return reply.Decode(&answer, "search results")
	})
	if err != nil {
		return 0, explainBrave(err)
	}
	if answer.Query == nil && answer.Web.Results == nil {
		return 0, noResults(b.service)
	}
	for _, r := range answer.Web.Results {
		c.add(braveTags.ReplaceAllString(r.Title, ""), r.URL, braveTags.ReplaceAllString(r.Description, ""))
	}
	if answer.Query != nil && answer.Query.More != nil && !*answer.Query.More {
		return 0, nil
	}
	return len(answer.Web.Results), nil
}

// explainBrave sets the type of a refused key's error: Brave answers with 422.
func explainBrave(err error) error {
	e := tea.AsError(err)
	if code, _ := e.Details["code"].(string); !strings.HasPrefix(code, "SUBSCRIPTION_TOKEN") {
		return err
	}
	explained := *e
	explained.Type = tea.PermissionDenied
	return &explained
}

package web_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/web"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

const testKey = "a-key-of-the-test"

// searchAt searches at a server that speaks the API of a provider.
func searchAt(t *testing.T, provider, address string, settings, params map[string]any) (any, *tea.Error) {
	t.Helper()
	all := map[string]any{"api_base": address, "api_key": testKey, "max_retries": 0}
	if provider != "" {
		all["provider"] = provider
	}
	for name, v := range settings {
		all[name] = v
	}
	if params["query"] == nil {
		params["query"] = "tea pots & cups"
	}
	got, err := teatest.Call(t, web.Bundle(), teatest.Request{
		Action: "web.search", Params: params, Settings: map[string]any{"web": map[string]any{"search": all}},
	})
	return got, tea.AsError(err)
}

// The answers are taken from the providers' documentation, with other texts.
var searchAnswers = map[string]string{
	"searxng": `{"query":"tea pots & cups","number_of_results":0,"results":[
		{"url":"https://a.test/1","title":"First &amp; best","content":"About  pots.","engine":"x","parsed_url":["https","a.test","/1","","",""],"positions":[1],"score":1.0,"category":"general"},
		{"url":"javascript:alert(1)","title":"Script","content":""},
		{"url":"https://b.test/2","title":"Second","content":"About cups."},
		{"url":"https://a.test/1","title":"First again","content":""}],
		"answers":[{"answer":"Both.","url":null}],"corrections":[],"infoboxes":[],"suggestions":[],"unresponsive_engines":[["slow engine","timeout"]]}`,
	"brave": `{"type":"search","query":{"original":"tea pots & cups","more_results_available":false},"mixed":{},"web":{"type":"search","results":[
		{"title":"First &amp; best","url":"https://a.test/1","description":"About <strong>pots</strong>.","age":"May 1, 2026","meta_url":{}},
		{"title":"Second","url":"https://b.test/2","description":"About cups."}]}}`,
	"tavily": `{"query":"tea pots & cups","follow_up_questions":null,"answer":"Both.","images":[],"results":[
		{"url":"https://a.test/1","title":"First & best","content":"About pots.","score":0.98,"raw_content":null},
		{"url":"https://b.test/2","title":"Second","content":"About cups.","score":0.5,"raw_content":null}],"response_time":1.1,"request_id":"1"}`,
	"perplexity": `{"id":"1","model":"sonar","created":1,"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"search_context_size":"low","cost":{"input_tokens_cost":0.1,"total_cost":0.5}},
		"citations":["https://a.test/1","https://b.test/2"],"search_results":[
		{"title":"First & best","url":"https://a.test/1","date":"2026-01-01","snippet":"About pots."},
		{"title":"Second","url":"https://b.test/2","date":null,"snippet":"About cups."}],
		"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Both."}}]}`,
}

func TestSearch(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]struct {
		path, query, header, value string
		body                       map[string]any
		answer                     any
	}{
		"searxng": {"/search", "format=json&pageno=1&q=tea+pots+%26+cups&time_range=week", "Authorization", "Bearer " + testKey, nil, "Both."},
		"brave":   {"/res/v1/web/search", "count=2&freshness=pw&offset=0&q=tea+pots+%26+cups&result_filter=web&text_decorations=false", "X-Subscription-Token", testKey, nil, nil},
		"tavily": {
			"/search", "", "Authorization", "Bearer " + testKey,
			map[string]any{"query": "tea pots & cups", "max_results": 2.0, "include_answer": true, "time_range": "week"},
			"Both.",
		},
		"perplexity": {
			"/chat/completions", "", "Authorization", "Bearer " + testKey,
			map[string]any{"model": "sonar", "messages": []any{map[string]any{"role": "user", "content": "tea pots & cups"}}, "search_recency_filter": "week"},
			"Both.",
		},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			server := servertest.Start(t, servertest.Reply{Chunks: []string{searchAnswers[provider]}})
			got, failure := searchAt(t, provider, server.URL, nil, map[string]any{"num_results": 2, "recency": "week"})
			if failure != nil {
				t.Fatal(failure)
			}
			result := map[string]any{
				"success": true, "query": "tea pots & cups", "total_results": int64(2),
				"results": []any{
					map[string]any{"title": "First & best", "url": "https://a.test/1", "snippet": "About pots.", "position": int64(1)},
					map[string]any{"title": "Second", "url": "https://b.test/2", "snippet": "About cups.", "position": int64(2)},
				},
			}
			if want.answer != nil {
				result["answer"] = want.answer
			}
			if provider == "searxng" {
				result["notes"] = []any{"a search engine of the instance did not answer: slow engine (timeout)", "1 results without an http or https address were skipped"}
			}
			if diff := cmp.Diff(result, got); diff != "" {
				t.Error(diff)
			}
			seen := server.Seen()
			if len(seen) != 1 {
				t.Fatalf("%d requests", len(seen))
			}
			if seen[0].Path != want.path || seen[0].Query != want.query || seen[0].Header.Get(want.header) != want.value {
				t.Errorf("got %s?%s, %v", seen[0].Path, seen[0].Query, seen[0].Header)
			}
			if diff := cmp.Diff(want.body, seen[0].Body); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPerplexityWithoutAnswer(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Chunks: []string{`{"id":"1","results":[{"title":"T","url":"https://a.test/","snippet":"S","date":"2026-01-01","last_updated":null}]}`}})
	got, failure := searchAt(t, "perplexity", server.URL, map[string]any{"answer": false}, map[string]any{"num_results": 30})
	if failure != nil {
		t.Fatal(failure)
	}
	want := map[string]any{
		"success": true, "query": "tea pots & cups", "total_results": int64(1), "notes": []any{"perplexity returns at most 20 results"},
		"results": []any{map[string]any{"title": "T", "url": "https://a.test/", "snippet": "S", "position": int64(1)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if seen := server.Seen()[0]; seen.Path != "/search" || seen.Body["max_results"] != 20.0 {
		t.Errorf("got %s %v", seen.Path, seen.Body)
	}
}

// pagesOf answers each page of a search with n results.
func pagesOf(format func(results []any) any, n int, pages int) []servertest.Reply {
	var replies []servertest.Reply
	for number := range pages {
		results := []any{}
		for i := range n {
			address := "https://a.test/" + url.PathEscape(strings.Repeat("x", number)) + "/" + strings.Repeat("y", i)
			results = append(results, map[string]any{"url": address, "title": "T"})
		}
		raw, _ := json.Marshal(format(results))
		replies = append(replies, servertest.Reply{Chunks: []string{string(raw)}})
	}
	return replies
}

func TestSearchAsksForMorePages(t *testing.T) {
	t.Parallel()
	formats := map[string]func([]any) any{
		"searxng": func(r []any) any { return map[string]any{"results": r} },
		"brave":   func(r []any) any { return map[string]any{"web": map[string]any{"results": r}} },
	}
	for provider, format := range formats {
		for name, c := range map[string]struct {
			replies           []servertest.Reply
			results, requests int
		}{
			"enough":      {pagesOf(format, 20, 5), 50, 3},
			"no more":     {append(pagesOf(format, 20, 2), pagesOf(format, 0, 1)...), 40, 3},
			"the same":    {pagesOf(format, 20, 1), 20, 2},
			"fails later": {append(pagesOf(format, 20, 1), servertest.Reply{Status: 500}), 20, 2},
		} {
			t.Run(provider+" "+name, func(t *testing.T) {
				t.Parallel()
				server := servertest.Start(t, c.replies...)
				got, failure := searchAt(t, provider, server.URL, nil, map[string]any{"num_results": 50})
				if failure != nil {
					t.Fatal(failure)
				}
				result, _ := got.(map[string]any)
				if result["total_results"] != int64(c.results) || len(server.Seen()) != c.requests {
					t.Errorf("got %v results after %d requests", result["total_results"], len(server.Seen()))
				}
				if notes := result["notes"]; (notes != nil) != (name == "fails later") {
					t.Errorf("notes %v", notes)
				}
			})
		}
	}
}

func TestSearchFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider string
		reply    servertest.Reply
		want     tea.ErrorType
		text     string
		again    bool
	}{
		"searxng without JSON":    {"searxng", servertest.Reply{Status: 403, Chunks: []string{"<!doctype html><title>403 Forbidden</title>"}}, tea.PermissionDenied, "search.formats", false},
		"searxng without engines": {"searxng", servertest.Reply{Chunks: []string{`{"results":[],"unresponsive_engines":[["a","timeout"],["b","CAPTCHA"]]}`}}, tea.ConnectionError, "a (timeout), b (CAPTCHA)", true},
		"a web page":              {"searxng", servertest.Reply{Chunks: []string{"<!doctype html><title>Log in</title>"}}, tea.ConnectionError, `a web page ("Log in")`, false},
		"brave, wrong key":        {"brave", servertest.Reply{Status: 422, Chunks: []string{`{"type":"ErrorResponse","error":{"id":"1","status":422,"detail":"The provided subscription token is invalid.","meta":{},"code":"SUBSCRIPTION_TOKEN_INVALID"},"time":1}`}}, tea.PermissionDenied, "subscription token is invalid", false},
		"brave, too many":         {"brave", servertest.Reply{Status: 429, Chunks: []string{`{"type":"ErrorResponse","error":{"status":429,"detail":"Request rate limit exceeded for plan.","code":"RATE_LIMITED"}}`}}, tea.RateLimited, "rate limit", true},
		"tavily, wrong key":       {"tavily", servertest.Reply{Status: 401, Chunks: []string{`{"detail":{"error":"Unauthorized: missing or invalid API key."}}`}}, tea.PermissionDenied, "invalid API key", false},
		"tavily, plan used up":    {"tavily", servertest.Reply{Status: 432, Chunks: []string{`{"detail":{"error":"This request exceeds your plan's set usage limit."}}`}}, tea.RateLimited, "usage limit", false},
		"perplexity, no credit":   {"perplexity", servertest.Reply{Status: 402, Chunks: []string{`{"error":{"message":"no credit left","type":"insufficient_quota","code":402}}`}}, tea.RateLimited, "no credit left", false},
		"perplexity, too many":    {"perplexity", servertest.Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}}, tea.RateLimited, "429", true},
		"the key comes back":      {"tavily", servertest.Reply{Status: 401, Chunks: []string{`{"detail":{"error":"bad key ` + testKey + `"}}`}}, tea.PermissionDenied, "bad key ***", false},
		"breaks off":              {"brave", servertest.Reply{Chunks: []string{`{"web"`}, Then: servertest.Break}, tea.ConnectionError, "closed the connection", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servertest.Start(t, c.reply)
			_, failure := searchAt(t, c.provider, server.URL, nil, map[string]any{})
			if failure == nil || failure.Type != c.want || !strings.Contains(failure.Message, c.text) || failure.Retryable != c.again {
				t.Errorf("got %v, retryable %v", failure, failure != nil && failure.Retryable)
			}
			if failure != nil && strings.Contains(failure.Error(), testKey) {
				t.Errorf("the key is in %v", failure)
			}
		})
	}
}

// An answer with status 200 that is not a list of results is an error, not an
// empty result.
func TestSearchAnswersWithoutResults(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"searxng", "brave", "tavily", "perplexity"} {
		for _, settings := range []map[string]any{nil, {"answer": false}} {
			for _, body := range []string{`{}`, `{"error":"try later"}`, `{"results":null,"choices":[]}`, `{"status":"ok","message":"welcome"}`} {
				server := servertest.Start(t, servertest.Reply{Chunks: []string{body}})
				got, failure := searchAt(t, provider, server.URL, settings, map[string]any{})
				if failure == nil || failure.Type != tea.ConnectionError {
					t.Errorf("%s %s: got %v, %v", provider, body, got, failure)
				}
			}
		}
	}
	for provider, body := range map[string]string{"searxng": `{"results":[]}`, "brave": `{"type":"search","query":{"original":"x"}}`, "tavily": `{"results":[]}`} {
		server := servertest.Start(t, servertest.Reply{Chunks: []string{body}})
		if _, failure := searchAt(t, provider, server.URL, nil, map[string]any{}); failure != nil {
			t.Errorf("%s found nothing: %v", provider, failure)
		}
	}
}

func TestSearchSettingsThatAreMissing(t *testing.T) {
	t.Parallel()
	for provider, text := range map[string]string{
		"": "set settings.web.search.provider", "searxng": "set settings.web.search.api_base",
		"brave": "set settings.web.search.api_key", "tavily": "${TAVILY_API_KEY}", "perplexity": "settings.web.search.api_key",
	} {
		_, failure := searchAt(t, provider, "", map[string]any{"api_key": ""}, map[string]any{})
		if failure == nil || failure.Type != tea.ValidationError || !strings.Contains(failure.Message, text) {
			t.Errorf("%q: got %v", provider, failure)
		}
	}
}

func TestSearchRetriesAndLogsIt(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Status: 503, Header: map[string]string{"Retry-After-Ms": "1"}}, servertest.Reply{Chunks: []string{searchAnswers["brave"]}})
	host := new(teatest.Host)
	settings := map[string]any{"web": map[string]any{"search": map[string]any{"provider": "brave", "api_base": server.URL, "api_key": testKey}}}
	call := teatest.Request{Action: "web.search", Params: map[string]any{"query": "x"}, Settings: settings, Host: host}
	if _, err := teatest.Call(t, web.Bundle(), call); err != nil {
		t.Fatal(err)
	}
	if logs := host.Recorded().Logs; len(logs) != 1 || !strings.Contains(logs[0].Message, "retrying the request to brave") {
		t.Errorf("logs %v", logs)
	}
	call.Call.Attempt = 2 // the node retries
	server = servertest.Start(t, servertest.Reply{Status: 503})
	settings["web"].(map[string]any)["search"].(map[string]any)["api_base"] = server.URL
	if _, err := teatest.Call(t, web.Bundle(), call); err == nil || len(server.Seen()) != 1 {
		t.Errorf("%d requests, %v", len(server.Seen()), err)
	}
}

package llm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// down is a server's answer that may pass, without a wait.
var down = servertest.Reply{Status: 503, Header: map[string]string{"Retry-After-Ms": "1"}, Chunks: []string{`{"error":"down"}`}}

func TestFallbacks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		first   servertest.Reply
		falls   bool
		primary int // requests there
	}{
		{"down", down, true, 2},
		{"wrong key", servertest.Reply{Status: 401}, true, 1},
		{"no such model", servertest.Reply{Status: 404}, true, 1},
		{"a web page", servertest.Reply{Chunks: []string{"<html>log in</html>"}}, true, 1},
		{"come back tomorrow", servertest.Reply{Status: 429, Header: map[string]string{"Retry-After": "86400"}}, true, 1},
		{"wrong request", servertest.Reply{Status: 400}, false, 1},
		{"filtered request", servertest.Reply{Status: 400, Chunks: []string{`{"error":{"code":"content_filter","message":"no"}}`}}, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			primary, other := servertest.Start(t, c.first), servertest.Start(t, answerText("hello"))
			settings := openAI(primary)
			settings["max_retries"] = 1
			settings["fallbacks"] = []any{"m-2", map[string]any{"api_base": other.URL, "model": "m-3", "api_key": "other-key"}}
			host := &teatest.Host{}
			got, err := call(t, host, "llm.call", settings, map[string]any{"prompt": "hi"})
			if !c.falls {
				if err == nil || len(primary.Seen()) != c.primary || len(other.Seen()) != 0 {
					t.Errorf("got %v, %v, %d and %d requests", got, err, len(primary.Seen()), len(other.Seen()))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := len(primary.Seen()); n != 2*c.primary {
				t.Errorf("%d requests of the first server, want %d of each model", n, c.primary)
			}
			if last := primary.Seen()[2*c.primary-1]; last.Body["model"] != "m-2" || last.Header.Get("Authorization") != "Bearer very-secret-key" {
				t.Errorf("the second model: %v", last)
			}
			if seen := other.Seen()[0]; seen.Body["model"] != "m-3" || seen.Header.Get("Authorization") != "Bearer other-key" || got["content"] != "hello" {
				t.Errorf("the other server: %v, result %v", seen, got)
			}
			fell := 0
			for _, log := range host.Recorded().Logs {
				if strings.HasPrefix(log.Message, "falling back to m-") {
					fell++
				}
			}
			if fell != 2 {
				t.Errorf("logs %v", host.Recorded().Logs)
			}
		})
	}
}

func TestAllFallbacksFail(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Status: 401, Chunks: []string{`{"error":"who?"}`}}, servertest.Reply{Status: 404, Chunks: []string{`{"error":"no m-2"}`}})
	settings := openAI(server)
	settings["api_base"] = strings.Replace(server.URL, "://", "://user:hidden-word@", 1) + "?key=hidden-word"
	settings["fallbacks"] = []any{"m-2"}
	host := &teatest.Host{}
	_, err := call(t, host, "llm.call", settings, map[string]any{"prompt": "hi"})
	if logs := fmt.Sprint(host.Recorded().Logs, err); strings.Contains(logs, "hidden-word") || !strings.Contains(logs, "falling back to m-2 at "+server.URL) {
		t.Errorf("logs %s", logs)
	}
	if err == nil || err.Type != tea.NotFound || !strings.Contains(err.Message, "no m-2") || !strings.Contains(err.Message, "m at "+server.URL+": HTTP 401: who?") {
		t.Errorf("got %v", err)
	}
	server = servertest.Start(t, servertest.Reply{Status: 401})
	if _, err = call(t, nil, "llm.call", openAI(server), map[string]any{"prompt": "hi", "fallbacks": []any{}}); err == nil || len(server.Seen()) != 1 {
		t.Errorf("got %v after %d requests", err, len(server.Seen()))
	}
}

// Once the reader has tokens, neither a retry nor a fallback may give it the
// beginning of another answer.
func TestTokensAreEmittedOnce(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Chunks: []string{`data: {"choices":[{"delta":{"content":"hel"}}]}` + "\n\n"}, Then: servertest.Break})
	settings := openAI(server)
	settings["fallbacks"] = []any{"m-2"}
	host := &teatest.Host{}
	_, err := call(t, host, "llm.stream", settings, map[string]any{"prompt": "hi"})
	if err == nil || err.Type != tea.ConnectionError || err.Details["tokens"] != int64(1) || !err.Retryable {
		t.Errorf("got %v", err)
	}
	if n := len(server.Seen()); n != 1 || host.Recorded().Text() != "hel" {
		t.Errorf("%d requests, tokens %q", n, host.Recorded().Text())
	}
	want := []tea.Usage{{Tokens: 2}} // estimated: "hi" and "hel"
	if diff := cmp.Diff(want, host.Recorded().Usage); diff != "" {
		t.Errorf("usage of the broken answer: %s", diff)
	}
}

// A node that is retried would multiply its retries with those of each
// attempt: only its first attempt retries by itself.
func TestRetriesOfPluginAndNodeDoNotMultiply(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, down)
	for attempt := 1; attempt <= 4; attempt++ {
		_, err := teatest.Call(t, llm.Bundle(), teatest.Request{
			Action: "llm.call", Params: map[string]any{"prompt": "hi"}, Settings: map[string]any{"llm": openAI(server)}, Call: tea.Call{Attempt: attempt},
		})
		if e := tea.AsError(err); e == nil || !e.Retryable {
			t.Errorf("attempt %d: got %v", attempt, err)
		}
		if n, want := len(server.Seen()), 4+attempt-1; n != want {
			t.Errorf("after attempt %d: %d requests, want %d", attempt, n, want)
		}
	}
}

// What a thinking model added to its turn goes back as it came, or the server
// refuses the conversation.
func TestExtraMembersGoBack(t *testing.T) {
	t.Parallel()
	const turn = `{"choices":[{"message":{"role":"assistant","content":null,"reasoning_content":"hm","refusal":null,"annotations":[],` +
		`"reasoning_details":[{"type":"reasoning.encrypted","data":"xyz","index":0}],` +
		`"tool_calls":[{"id":"c1","type":"function","extra_content":{"google":{"thought_signature":"sig"}},"function":{"name":"math_add","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	server := servertest.Start(t, servertest.Reply{Chunks: []string{turn}}, answerText("ok"))
	got, err := call(t, adder(), "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"math.add"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"role": "assistant", "content": "", "reasoning_content": "hm",
		"reasoning_details": []any{map[string]any{"type": "reasoning.encrypted", "data": "xyz", "index": 0.0}},
		"tool_calls": []any{map[string]any{
			"id": "c1", "type": "function", "extra_content": map[string]any{"google": map[string]any{"thought_signature": "sig"}},
			"function": map[string]any{"name": "math_add", "arguments": "{}"},
		}},
	}
	if diff := cmp.Diff(want, server.Seen()[1].Body["messages"].([]any)[1]); diff != "" {
		t.Error(diff)
	}

	// The same by way of the workflow's state.
	next := servertest.Start(t, answerText("fine"))
	if _, err := call(t, adder(), "llm.call", openAI(next), map[string]any{"messages": got["messages"], "prompt": "more", "tools": []any{"math.add"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, next.Seen()[0].Body["messages"].([]any)[1]); diff != "" {
		t.Error(diff)
	}
}

// Another server does not know what the first one added, and may refuse it.
func TestExtraMembersStayWithTheirServer(t *testing.T) {
	t.Parallel()
	const turn = `{"choices":[{"message":{"reasoning_content":"hm","tool_calls":[{"id":"c1","extra_content":{"a":1},"function":{"name":"math_add","arguments":"{}"}}]}}]}`
	primary, other := servertest.Start(t, servertest.Reply{Chunks: []string{turn}}, servertest.Reply{Status: 401}), servertest.Start(t, servertest.Reply{Chunks: []string{turn}}, answerText("ok"))
	settings := openAI(primary)
	settings["fallbacks"] = []any{map[string]any{"api_base": other.URL}}
	if _, err := call(t, adder(), "llm.tools", settings, map[string]any{"prompt": "hi", "tools": []any{"math.add"}}); err != nil {
		t.Fatal(err)
	}
	if n := len(primary.Seen()); n != 2 {
		t.Errorf("the first server was asked %d times", n)
	}
	messages := other.Seen()[1].Body["messages"].([]any)
	foreign, own := messages[1].(map[string]any), messages[3].(map[string]any)
	if foreign["reasoning_content"] != nil || foreign["tool_calls"].([]any)[0].(map[string]any)["extra_content"] != nil {
		t.Errorf("sent %v", foreign)
	}
	if own["reasoning_content"] != "hm" {
		t.Errorf("lost its own members: %v", own)
	}
}

// A conversation that goes on after a crash stays with the server that it had
// fallen back to.
func TestResumedConversationStaysWithItsServer(t *testing.T) {
	t.Parallel()
	const turn = `{"choices":[{"message":{"reasoning_content":"hm","tool_calls":[{"id":"c1","function":{"name":"crash","arguments":"{}"}}]}}]}`
	primary, other := servertest.Start(t, servertest.Reply{Status: 401}), servertest.Start(t, servertest.Reply{Chunks: []string{turn}}, answerText("ok"))
	settings := openAI(primary)
	settings["fallbacks"] = []any{map[string]any{"api_base": other.URL}}
	params := map[string]any{"prompt": "hi", "tools": []any{"crash"}}
	host := &teatest.Host{Actions: map[string]action{"crash": func(context.Context, any) (any, error) { return nil, tea.Errorf(tea.Canceled, "the power went off") }}}
	if _, err := call(t, host, "llm.tools", settings, params); err == nil {
		t.Fatal("no error")
	}
	resumed := crashless(&teatest.Host{Actions: map[string]action{}, Notes: host.Recorded().Notes})
	if _, err := call(t, resumed, "llm.tools", settings, params); err != nil {
		t.Fatal(err)
	}
	if n := len(primary.Seen()); n != 1 {
		t.Errorf("the first server was asked %d times", n)
	}
	if own := other.Seen()[1].Body["messages"].([]any)[1].(map[string]any); own["reasoning_content"] != "hm" {
		t.Errorf("lost its own members: %v", own)
	}
}

// A workflow that plays recordings needs no network, whatever it falls back to.
func TestFallbacksAreRecordedToo(t *testing.T) {
	t.Parallel()
	primary, other := servertest.Start(t, servertest.Reply{Status: 401}), servertest.Start(t, servertest.Reply{Chunks: []string{`{"message":{"content":"hello"},"done":true}`}})
	settings := openAI(primary)
	replay := map[string]any{"file": t.TempDir() + "/answers.jsonl", "record": true}
	settings["provider"], settings["replay"] = "replay", replay
	settings["fallbacks"] = []any{map[string]any{"provider": "ollama", "model": "tiny", "api_base": other.URL}}
	params := map[string]any{"prompt": "hi"}
	for _, record := range []bool{true, false} {
		if !record {
			delete(replay, "record")
		}
		got, err := call(t, nil, "llm.call", settings, params)
		if err != nil || got["content"] != "hello" {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if n, m := len(primary.Seen()), len(other.Seen()); n != 1 || m != 1 {
		t.Errorf("%d and %d requests", n, m)
	}
}

// The host counts what each attempt of a node has used: what an earlier one
// noted must not count again, and what a crash left behind must.
func TestRecordedAnswersCountOnce(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, wants([2]string{"math_add", `{"x":1}`}), servertest.Reply{Status: 401})
	host := adder()
	params := map[string]any{"prompt": "hi", "tools": []any{"math.add"}}
	if _, err := call(t, host, "llm.tools", openAI(server), params); err == nil {
		t.Fatal("no error")
	}
	for attempt, want := range map[int]int64{1: 30, 2: 15} {
		again := adder()
		again.Notes = host.Recorded().Notes
		got, err := teatest.Call(t, llm.Bundle(), teatest.Request{
			Action: "llm.tools", Params: params, Settings: map[string]any{"llm": openAI(servertest.Start(t, answerText("ok")))},
			Host: again, Call: tea.Call{IdempotencyKey: "key", Attempt: attempt},
		})
		if err != nil {
			t.Fatal(err)
		}
		if usage := got.(map[string]any)["usage"].(map[string]any); usage["total_tokens"] != want {
			t.Errorf("attempt %d: usage %v, want %d", attempt, usage, want)
		}
	}
}

func TestCachedAndReasoningTokensArePriced(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Chunks: []string{`{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500,` +
		`"prompt_tokens_details":{"cached_tokens":400},"completion_tokens_details":{"reasoning_tokens":300}}}`}})
	for _, c := range []struct {
		price map[string]any
		want  float64
	}{
		{map[string]any{"input": 2, "output": 10}, 0.007},
		{map[string]any{"input": 2, "output": 10, "cached_input": 0.5}, 0.0064},
		{map[string]any{"input": 2, "output": 10, "cached_input": 0, "reasoning": 20}, 0.0092},
	} {
		settings := openAI(server)
		settings["prices"] = map[string]any{"m": c.price}
		host := &teatest.Host{}
		got, err := call(t, host, "llm.call", settings, map[string]any{"prompt": "hi"})
		if err != nil {
			t.Fatal(err)
		}
		usage := map[string]any{"input_tokens": int64(1000), "output_tokens": int64(500), "total_tokens": int64(1500), "cached_tokens": int64(400), "reasoning_tokens": int64(300), "estimated": false}
		if diff := cmp.Diff(usage, got["usage"]); diff != "" {
			t.Error(diff)
		}
		if usd, _ := got["cost_usd"].(float64); usd < c.want-1e-9 || usd > c.want+1e-9 {
			t.Errorf("%v: cost %v, want %v", c.price, usd, c.want)
		}
		if reports := host.Recorded().Usage; len(reports) != 1 || reports[0].Tokens != 1500 || reports[0].USD != got["cost_usd"] {
			t.Errorf("reported %v", reports)
		}
	}
}

// The budget is checked between the requests of one call.
func TestBudgetEndsACall(t *testing.T) {
	t.Parallel()
	again := wants([2]string{"math_add", `{"x":1}`}) // 15 tokens
	for _, c := range []struct {
		name, action string
		params       map[string]any
		replies      []servertest.Reply
		requests     int
	}{
		{"rounds of tools", "llm.tools", map[string]any{"tools": []any{"math.add"}}, []servertest.Reply{again}, 3},
		{"repairs", "llm.call", map[string]any{"schema": degrees, "max_repairs": 9}, []servertest.Reply{answerText("warm")}, 3},
		{"batches", "embedding.create", map[string]any{"input": []any{"a", "b", "c", "d"}, "batch_size": 1}, []servertest.Reply{{Chunks: []string{`{"data":[{"embedding":[1.5]}],"usage":{"prompt_tokens":15}}`}}}, 3},
		{"answers that break off", "llm.call", map[string]any{"max_retries": 9}, []servertest.Reply{{Header: map[string]string{"Content-Length": "1000"}, Chunks: []string{"{"}, Then: servertest.Break}}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := servertest.Start(t, c.replies...)
			host := adder()
			host.Budget = 40
			if c.action != "embedding.create" {
				c.params["prompt"] = strings.Repeat("hi ", 16) // 12 tokens
			}
			_, err := call(t, host, c.action, openAI(server), c.params)
			if err == nil || err.Type != tea.BudgetExceeded {
				t.Errorf("got %v", err)
			}
			if n := len(server.Seen()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
	// An answer that is paid for is returned.
	host := &teatest.Host{Budget: 10}
	if got, err := call(t, host, "llm.call", openAI(servertest.Start(t, answerText("hello"))), map[string]any{"prompt": "hi"}); err != nil || got["content"] != "hello" {
		t.Errorf("got %v, %v", got, err)
	}
}

// An answer that was cut off, withheld or refused has its own type, and asking
// again would not help.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	message := func(message, finish string) servertest.Reply {
		return servertest.Reply{Chunks: []string{`{"choices":[{"message":` + message + `,"finish_reason":"` + finish + `"}]}`}}
	}
	cutCall := `{"tool_calls":[{"id":"c1","function":{"name":"math_add","arguments":""}}]}`
	for _, c := range []struct {
		name  string
		reply servertest.Reply
		want  tea.ErrorType
	}{
		{"length", message(`{"content":"{\"degr"}`, "length"), llm.Length},
		{"length in other words", message(`{"content":"{\"degr"}`, "max_tokens"), llm.Length},
		{"content_filter", message(`{"content":""}`, "content_filter"), llm.ContentFilter},
		{"refusal", message(`{"content":null,"refusal":"I cannot."}`, "stop"), llm.Refusal},
	} {
		server := servertest.Start(t, c.reply)
		_, err := call(t, nil, "llm.call", openAI(server), map[string]any{"prompt": "hi", "schema": degrees})
		if err == nil || err.Type != c.want || err.Retryable || err.Details["finish_reason"] != string(c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
		if n := len(server.Seen()); n != 1 {
			t.Errorf("%s: asked %d times", c.name, n)
		}
		got, err := call(t, nil, "llm.call", openAI(server), map[string]any{"prompt": "hi"})
		if err != nil || got["finish_reason"] != string(c.want) {
			t.Errorf("%s without a schema: got %v, %v", c.name, got, err)
		}
	}
	// Arguments that were cut off must not run a tool.
	host := adder()
	_, err := call(t, host, "llm.tools", openAI(servertest.Start(t, message(cutCall, "length"))), map[string]any{"prompt": "hi", "tools": []any{"math.add"}})
	if err == nil || err.Type != llm.Length || len(host.Recorded().Invoked) != 0 {
		t.Errorf("got %v, ran %v", err, host.Recorded().Invoked)
	}
	// What fits although it was cut off is an answer.
	got, err := call(t, nil, "llm.call", openAI(servertest.Start(t, message(`{"content":"{\"degrees\":21}"}`, "length"))), map[string]any{"prompt": "hi", "schema": degrees})
	if err != nil || got["data"] == nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEqualIDsOfCallsAreReported(t *testing.T) {
	t.Parallel()
	reply := servertest.Reply{Chunks: []string{`{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"math_add","arguments":"{\"x\":1}"}},{"id":"c","function":{"name":"math_add","arguments":"{\"x\":2}"}}]}}]}`}}
	server := servertest.Start(t, reply, answerText("ok"))
	if _, err := call(t, adder(), "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"math.add"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"c": `{"sum":1}`, "call_1_1": `{"sum":2}`}, toolMessages(server.Seen()[1])); diff != "" {
		t.Error(diff)
	}
}

func TestTooManyCallsInOneRound(t *testing.T) {
	t.Parallel()
	calls := make([][2]string, 129)
	for i := range calls {
		calls[i] = [2]string{"math_add", "{}"}
	}
	host := adder()
	_, err := call(t, host, "llm.tools", openAI(servertest.Start(t, wants(calls...))), map[string]any{"prompt": "hi", "tools": []any{"math.add"}})
	if err == nil || err.Type != tea.ResourceExhausted || len(host.Recorded().Invoked) != 0 {
		t.Errorf("got %v, ran %d", err, len(host.Recorded().Invoked))
	}
}

func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, answerText(strings.Repeat("a", 2000)))
	settings := openAI(server)
	settings["max_answer_bytes"] = 1000
	_, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi"})
	if err == nil || err.Type != tea.ResourceExhausted || err.Retryable || len(server.Seen()) != 1 {
		t.Errorf("got %v after %d requests", err, len(server.Seen()))
	}
	if _, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi", "max_answer_bytes": 3000}); err != nil {
		t.Error(err)
	}
}

// The limit is one of the server, whichever settings the calls have.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	arrived, leave := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		arrived <- struct{}{}
		<-leave
		mu.Lock()
		now--
		mu.Unlock()
		io.WriteString(w, `{"choices":[{"message":{"content":"a"}}]}`)
	}))
	t.Cleanup(server.Close)
	bundle := llm.Bundle()
	var calls sync.WaitGroup
	failures := make(chan error, 6)
	for i := range 6 {
		calls.Go(func() {
			settings := map[string]any{"model": "m", "api_base": server.URL, "max_concurrent_requests": 2, "temperature": float64(i % 2)}
			_, err := teatest.Call(t, bundle, teatest.Request{Action: "llm.call", Params: map[string]any{"prompt": "hi"}, Settings: map[string]any{"llm": settings}})
			failures <- err
		})
	}
	<-arrived
	<-arrived
	for i := range 6 {
		leave <- struct{}{}
		if i < 4 {
			<-arrived
		}
	}
	calls.Wait()
	for range 6 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	if most != 2 {
		t.Errorf("%d requests at the same time", most)
	}
}

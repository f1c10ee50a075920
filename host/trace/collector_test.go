package trace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/trace"
)

// at is a moment of the invented runs.
func at(ms int) time.Time { return time.UnixMilli(1_700_000_000_000 + int64(ms)).UTC() }

// events are the events of an invented run, one millisecond apart unless a time is set.
func events(list ...flow.Event) []flow.Event {
	for i := range list {
		list[i].Seq, list[i].RunID = int64(i+1), "run1"
		if list[i].Time.IsZero() {
			list[i].Time = at(i)
		}
	}
	return list
}

// smallRun is a run of one node that calls a model.
func smallRun() []flow.Event {
	return events(
		flow.Event{Type: flow.EventRunStart, Fields: fields(map[string]any{"workflow": "flow"})},
		flow.Event{Type: flow.EventNodeStart, Node: "ask", Path: "ask", Fields: fields(map[string]any{"uses": "llm.call"})},
		flow.Event{Type: flow.EventToken, Node: "ask", Path: "ask", Fields: fields(map[string]any{"text": "private"})},
		flow.Event{Type: flow.EventNodeEnd, Node: "ask", Path: "ask", Fields: fields(map[string]any{
			"usage": map[string]any{"input_tokens": int64(12), "output_tokens": int64(3)}, "model": "tiny", "cost_usd": 0.5,
		})},
		flow.Event{Type: flow.EventRunEnd, Fields: fields(map[string]any{
			"status": "failed", "error": "too bad", "error_type": "timeout", "steps": int64(1),
		})},
	)
}

func feed(t *testing.T, o trace.Options, list []flow.Event) error {
	t.Helper()
	tracer, err := trace.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		tracer.Event(e)
	}
	return tracer.Close(t.Context())
}

// request is what a collector was sent.
type request struct {
	path, contentType, key string
	body                   string
}

// server is a collector that answers with the handlers in order, the last of
// them for ever.
func server(t *testing.T, answers ...http.HandlerFunc) (url string, requests func() []request) {
	t.Helper()
	var mu sync.Mutex
	var seen []request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		answer := answers[min(len(seen), len(answers)-1)]
		seen = append(seen, request{r.Method + " " + r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("X-Key"), string(body)})
		mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []request {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// The body follows OTLP's JSON mapping: hexadecimal identifiers, 64-bit
// integers as strings, enumerations as numbers.
func TestCollectorGetsOTLPJSON(t *testing.T) {
	t.Parallel()
	url, requests := server(t, answer(200, "{}"))
	err := feed(t, trace.Options{Exporter: trace.OTLP, Endpoint: url, Headers: map[string]string{"X-Key": "k"}, Version: "1.2.3"}, smallRun())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"resourceSpans": [{
	"resource": {"attributes": [
		{"key": "service.name", "value": {"stringValue": "tea"}},
		{"key": "service.version", "value": {"stringValue": "1.2.3"}}]},
	"scopeSpans": [{"scope": {"name": "github.com/the-edge-agent/tea"}, "spans": [
		{
			"traceId": "34e9aedefffddf04c3cf3f9e055ba714", "spanId": "f9b6c2bc4c98978b", "parentSpanId": "082f2207b4e88cc4",
			"name": "ask", "kind": 3,
			"startTimeUnixNano": "1700000000001000000", "endTimeUnixNano": "1700000000003000000",
			"attributes": [
				{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
				{"key": "gen_ai.request.model", "value": {"stringValue": "tiny"}},
				{"key": "gen_ai.response.model", "value": {"stringValue": "tiny"}},
				{"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}},
				{"key": "gen_ai.usage.output_tokens", "value": {"intValue": "3"}},
				{"key": "tea.action", "value": {"stringValue": "llm.call"}},
				{"key": "tea.cost_usd", "value": {"doubleValue": 0.5}},
				{"key": "tea.node", "value": {"stringValue": "ask"}},
				{"key": "tea.path", "value": {"stringValue": "ask"}}],
			"status": {}
		},
		{
			"traceId": "34e9aedefffddf04c3cf3f9e055ba714", "spanId": "082f2207b4e88cc4",
			"name": "flow", "kind": 1,
			"startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000004000000",
			"attributes": [
				{"key": "error.type", "value": {"stringValue": "timeout"}},
				{"key": "tea.run.id", "value": {"stringValue": "run1"}},
				{"key": "tea.status", "value": {"stringValue": "failed"}},
				{"key": "tea.steps", "value": {"intValue": "1"}}],
			"events": [{"timeUnixNano": "1700000000004000000", "name": "exception", "attributes": [
				{"key": "exception.message", "value": {"stringValue": "too bad"}},
				{"key": "exception.type", "value": {"stringValue": "timeout"}}]}],
			"status": {"code": 2, "message": "too bad"}
		}]}]}]}`
	got := requests()
	if len(got) != 1 {
		t.Fatalf("%d requests, want 1", len(got))
	}
	body := got[0].body
	got[0].body = ""
	if diff := cmp.Diff([]request{{path: "POST /v1/traces", contentType: "application/json", key: "k"}}, got, cmp.AllowUnexported(request{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(compact(t, want), compact(t, body)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func compact(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestExportIsRetried(t *testing.T) {
	t.Parallel()
	url, requests := server(t, answer(503, "", "Retry-After", "0"), answer(429, "", "Retry-After", "0"), answer(200, ""))
	if err := feed(t, trace.Options{Exporter: trace.OTLP, Endpoint: url + "/otlp/"}, smallRun()); err != nil {
		t.Fatal(err)
	}
	got := requests()
	if len(got) != 3 || got[0].body != got[2].body || got[0].path != "POST /otlp/v1/traces" {
		t.Errorf("requests: %v", got)
	}
}

func TestEndpointWithAKey(t *testing.T) {
	t.Parallel()
	url, requests := server(t, answer(200, ""), answer(400, "no"))
	var log bytes.Buffer
	o := trace.Options{Exporter: trace.OTLP, Endpoint: strings.Replace(url, "//", "//me:hush@", 1) + "/v1/traces?key=hush", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	if err := feed(t, o, smallRun()); err != nil {
		t.Fatal(err)
	}
	if got := requests()[0].path; got != "POST /v1/traces?key=hush" {
		t.Errorf("request: %s", got)
	}
	if err := feed(t, o, smallRun()); err == nil || strings.Contains(err.Error()+log.String(), "hush") {
		t.Errorf("the key is in the messages: %v, %s", err, &log)
	}
	for _, endpoint := range []string{"ftp://me:hush@c/?key=hush", "http://me:hush@c/%zz?key=hush"} {
		if _, err := trace.New(trace.Options{Exporter: trace.OTLP, Endpoint: endpoint}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestLostSpansAreReported(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]struct {
		answer http.HandlerFunc
		tries  int
		lost   bool
		log    string
	}{
		"refused":          {answer(400, "no such tenant"), 1, true, "no such tenant"},
		"never ready":      {answer(503, "", "Retry-After", "0"), 4, true, "503 Service Unavailable"},
		"elsewhere":        {answer(307, "", "Location", "/elsewhere"), 1, true, "307 Temporary Redirect"},
		"accepted":         {answer(202, ""), 1, false, ""},
		"taken and thrown": {answer(200, `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`), 1, false, "too old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := server(t, answers.answer)
			var log bytes.Buffer
			err := feed(t, trace.Options{Exporter: trace.OTLP, Endpoint: url, Logger: slog.New(slog.NewTextHandler(&log, nil))}, smallRun())
			if (err != nil) != answers.lost {
				t.Errorf("close: %v", err)
			}
			if n := len(requests()); n != answers.tries {
				t.Errorf("%d tries, want %d", n, answers.tries)
			}
			if !strings.Contains(log.String(), answers.log) {
				t.Errorf("the log does not say %q:\n%s", answers.log, &log)
			}
		})
	}
}

func TestCloseDoesNotWaitForACollectorThatHangs(t *testing.T) {
	t.Parallel()
	reached, leave := make(chan struct{}), make(chan struct{})
	url, _ := server(t, func(http.ResponseWriter, *http.Request) { close(reached); <-leave })
	t.Cleanup(func() { close(leave) })
	tracer, err := trace.New(trace.Options{Exporter: trace.OTLP, Endpoint: url})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range smallRun() {
		tracer.Event(e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	if err := tracer.Close(ctx); err == nil {
		t.Error("close does not report lost spans")
	}
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// otelCollector is a running OpenTelemetry collector.
type otelCollector struct {
	t   *testing.T
	url string
	// lines are the requests that it got.
	lines *bufio.Scanner
	// spans and metrics are what await has seen, by name.
	spans, metrics map[string]map[string]any
	resource       map[string]any
}

func newCollector(t *testing.T) *otelCollector {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(peertest.Dir(t, "../..", "otel-collector"), "otel-collector"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	c := &otelCollector{t: t, lines: bufio.NewScanner(out), spans: map[string]map[string]any{}, metrics: map[string]map[string]any{}}
	c.lines.Buffer(nil, 16<<20)
	if !c.lines.Scan() {
		t.Fatalf("the collector has no address: %v", c.lines.Err())
	}
	c.url = c.lines.Text()
	return c
}

// await reads requests until what the collector has is enough.
func (c *otelCollector) await(enough func() bool) {
	c.t.Helper()
	for !enough() {
		if !c.lines.Scan() {
			c.t.Fatalf("the collector ended: %v; spans %v, metrics %v", c.lines.Err(), c.spans, c.metrics)
		}
		var request struct {
			ResourceSpans []struct {
				Resource   map[string]any
				ScopeSpans []struct{ Spans []map[string]any }
			}
			ResourceMetrics []struct {
				Resource     map[string]any
				ScopeMetrics []struct{ Metrics []map[string]any }
			}
		}
		if err := json.Unmarshal(c.lines.Bytes(), &request); err != nil {
			c.t.Fatal(err)
		}
		for _, r := range request.ResourceSpans {
			c.resource = attributesOf(r.Resource)
			for _, s := range r.ScopeSpans {
				for _, span := range s.Spans {
					c.spans[span["name"].(string)] = span
				}
			}
		}
		for _, r := range request.ResourceMetrics {
			c.resource = attributesOf(r.Resource)
			for _, s := range r.ScopeMetrics {
				for _, m := range s.Metrics {
					c.metrics[m["name"].(string)] = m
				}
			}
		}
	}
}

// attributesOf returns the attributes of a message in OTLP's JSON.
func attributesOf(message map[string]any) map[string]any {
	all := map[string]any{}
	list, _ := message["attributes"].([]any)
	for _, a := range list {
		pair := a.(map[string]any)
		for _, v := range pair["value"].(map[string]any) {
			all[pair["key"].(string)] = v
		}
	}
	return all
}

// points returns the values of a metric, by the attributes as JSON.
func (c *otelCollector) points(name, kind, field string) map[string]any {
	c.t.Helper()
	data, _ := c.metrics[name][kind].(map[string]any)
	list, _ := data["dataPoints"].([]any)
	all := map[string]any{}
	for _, p := range list {
		point := p.(map[string]any)
		key, err := json.Marshal(attributesOf(point))
		if err != nil {
			c.t.Fatal(err)
		}
		all[string(key)] = point[field]
	}
	return all
}

// builtPlugins builds the plugins for models and agents, and returns their directory.
var builtPlugins = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tea-plugin")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-ldflags=-w", "-o", dir, "../../plugins/llm/cmd/tea-plugin-llm", "../../plugins/mcp/cmd/tea-plugin-mcp").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the plugins: %w\n%s", err, out)
	}
	return dir, nil
})

// modelServer is a model with the API of OpenAI, which refuses prompts that say so.
func modelServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(body), "refuse") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"model": "m-1", "choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// asker is a workflow that asks a model.
func asker(t *testing.T) string {
	return "name: asker\nstate_schema: {prompt: str}\nsettings: {llm: {provider: openai, api_base: '" + modelServer(t) + "', api_key: k, model: m-1}}\n" +
		"nodes: [{name: ask, uses: llm.call, with: {prompt: '{{ state.prompt }}'}}]\n"
}

func (p *project) withPlugins() []string {
	dir, err := builtPlugins()
	if err != nil {
		p.t.Fatal(err)
	}
	return []string{"--plugins", dir}
}

func TestCollectorGetsTracesAndMetrics(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	p := newProject(t, map[string]string{"asker.yaml": asker(t)})
	s := p.serve(append(p.withPlugins(), "--otlp-endpoint", c.url, "--metrics-interval", "1s")...)
	s.run("asker", `{"prompt": "Hi"}`)
	if r := s.request("POST", "/v1/workflows/asker/runs?wait=600", `{"input": {"prompt": "refuse"}}`); r.body["status"] != "failed" {
		t.Fatalf("run: %s", r)
	}
	const model = `"gen_ai.operation.name":"chat","gen_ai.provider.name":"openai","gen_ai.request.model":"m-1"`
	c.await(func() bool {
		return c.spans["asker"] != nil && c.spans["ask"] != nil && len(c.points("tea_runs_total", "sum", "asDouble")) == 2 && len(c.points("gen_ai.client.operation.duration", "histogram", "count")) == 2
	})
	if diff := cmp.Diff(map[string]any{"{" + model + `,"gen_ai.token.type":"input"}`: 12.0, "{" + model + `,"gen_ai.token.type":"output"}`: 3.0},
		c.points("gen_ai.client.token.usage", "histogram", "sum")); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"{" + model + "}": "1", `{"error.type":"permission_denied","gen_ai.operation.name":"chat","gen_ai.provider.name":"unknown","gen_ai.request.model":"unknown"}`: "1"},
		c.points("gen_ai.client.operation.duration", "histogram", "count")); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{`{"status":"done","workflow":"asker"}`: 1.0, `{"status":"failed","workflow":"asker"}`: 1.0}, c.points("tea_runs_total", "sum", "asDouble")); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if got := c.metrics["gen_ai.client.token.usage"]["unit"]; got != "{token}" {
		t.Errorf("unit: %v", got)
	}
	if c.resource["service.name"] != "tea" || !strings.HasSuffix(fmt.Sprint(c.resource["service.instance.id"]), ":"+filepath.Join(p.home, "tea", "runs")) {
		t.Errorf("resource: %v", c.resource)
	}
	// The collector has all the metrics that Prometheus has, except those that have
	// other names there.
	for line := range strings.Lines(s.request("GET", "/metrics", "").text) {
		name, isType := strings.CutPrefix(line, "# TYPE ")
		if name, _, _ = strings.Cut(name, " "); isType && c.metrics[name] == nil && !strings.HasPrefix(name, "gen_ai_") {
			t.Errorf("the collector has no %s", name)
		}
	}
	s.interrupt()
}

// unreachable are collectors that accept nothing.
func unreachable(t *testing.T) map[string]string {
	t.Helper()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	leave := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-leave }))
	t.Cleanup(func() { close(leave); slow.Close() })
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(refusing.Close)
	return map[string]string{"down": gone.URL, "slow": slow.URL, "refusing": refusing.URL}
}

// Runs do not wait for a collector, whether the server or the workflow names it.
func TestUnavailableCollectorDoesNotAffectRuns(t *testing.T) {
	t.Parallel()
	for name, url := range unreachable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newProject(t, map[string]string{
				"greet.yaml": greet, "own.yaml": "settings: {trace: {exporter: otlp, endpoint: '" + url + "'}}\nnodes: [{name: n}]\n",
			}).serve("--durability", "exit", "--otlp-endpoint", url, "--metrics-interval", "1s")
			const runs = 200
			for range runs { // one after the other: each of them would wait for the spans
				s.run("greet", `{"name": "Ada"}`)
			}
			s.run("own", "{}")
			s.log.await(t, "the metrics did not reach the collector")
			s.interrupt()
			for _, line := range []string{"the metrics did not reach the collector", "spans did not reach the collector"} {
				if n := strings.Count(s.log.String(), `msg="`+line); n > 1 {
					t.Errorf("the log has %q %d times:\n%s", line, n, s.log)
				}
			}
			if !strings.Contains(s.log.String(), "spans are lost") {
				t.Errorf("the log does not say that spans are lost:\n%s", s.log)
			}
		})
	}
}

func TestHeaderOfTheCollectorIsASecret(t *testing.T) {
	t.Parallel()
	got := make(chan string, 100)
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case got <- r.Header.Get("Authorization"):
		default:
		}
	}))
	t.Cleanup(c.Close)
	p := newProject(t, map[string]string{
		"own.yaml": "settings: {trace: {exporter: otlp, endpoint: 'http://127.0.0.1:1', headers: {Authorization: own}}}\nnodes: [{name: n}]\n",
	})
	s := p.serve("--otlp-endpoint", c.URL, "--otlp-header", "Authorization=COLLECTOR", "--secrets", `{"COLLECTOR": "Bearer 0123456789"}`)
	s.run("own", "{}")
	if key := <-got; key != "Bearer 0123456789" {
		t.Errorf("Authorization: %q", key)
	}
	s.interrupt()
	if strings.Contains(s.log.String(), "0123456789") {
		t.Errorf("the log has a secret:\n%s", s.log)
	}
}

func TestWrongFlagsOfTheCollector(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"there is no such secret":         {"--otlp-endpoint", "http://127.0.0.1:1", "--otlp-header", "X=NONE"},
		"is not an http or https URL":     {"--otlp-endpoint", "collector:4318"},
		"no effect without":               {"--otlp-header", "X=NONE"},
		"--metrics-interval 10ms: expect": {"--metrics-interval", "10ms"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			p, log := newProject(t, nil), newLogs()
			if err := p.command(log, append([]string{"serve", p.dir}, args...)...).Run(); err == nil || !strings.Contains(log.String(), want) {
				t.Errorf("got %v\n%s", err, log)
			}
		})
	}
}

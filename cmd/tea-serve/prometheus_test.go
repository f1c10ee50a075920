package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// prometheus is a Prometheus that scrapes a server.
type prometheus struct {
	t   *testing.T
	url string
}

// newPrometheus starts a Prometheus. A scrape that takes longer than the interval fails.
func newPrometheus(t *testing.T, s *service, interval string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: %s, scrape_timeout: %[1]s}\nscrape_configs: [{job_name: tea, static_configs: [{targets: [%[2]q]}]}]\n", interval, strings.TrimPrefix(s.url, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := newLogs()
	cmd := exec.CommandContext(t.Context(), filepath.Join(peertest.Dir(t, "../..", "prometheus"), "prometheus"),
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	cmd.Stderr = log
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	log.await(t, `Listening on`)
	address := regexp.MustCompile(`Listening on" address=(\S+)`).FindStringSubmatch(log.String())
	if address == nil {
		t.Fatalf("prometheus has no address:\n%s", log)
	}
	return &prometheus{t, "http://" + address[1]}
}

// query returns the values of an expression.
func (p *prometheus) query(expr string) []any {
	p.t.Helper()
	res, err := http.Get(p.url + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusServiceUnavailable {
		return nil // it starts
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		p.t.Fatal(err)
	}
	if answer.Status != "success" {
		p.t.Fatalf("query %s: %s", expr, answer.Error)
	}
	return answer.Data.Result
}

// await asks until an expression has a value.
func (p *prometheus) await(expr string) {
	p.t.Helper()
	for len(p.query(expr)) == 0 {
		select {
		case <-time.After(200 * time.Millisecond): // Prometheus does not notify
		case <-p.t.Context().Done():
			p.t.Fatalf("no value of %s", expr)
		}
	}
}

// Each query of the dashboard has data in Prometheus.
func TestDashboardInPrometheus(t *testing.T) {
	t.Parallel()
	peertest.Dir(t, "../..", "prometheus")
	p := newProject(t, map[string]string{
		"asker.yaml": asker(t), "bad.yaml": "nodes: [{name: n, uses: jsn.parse}]",
		"picky.yaml": "state_schema: {n: int}\nnodes: [{name: n}]\nserve: {triggers: [{at_start: true, input: {n: many}}]}\n", // the event starts no run
	})
	s := p.serve(append(p.withPlugins(), "--alert-url", modelServer(t))...)
	prom := newPrometheus(t, s, "2s")
	prom.await(`up{job="tea"} == 1`)
	s.run("asker", `{"prompt": "Hi"}`)
	s.request("POST", "/v1/workflows/asker/runs?wait=600", `{"input": {"prompt": "refuse"}}`)
	prom.await(`tea_runs_total{status="failed"}`)
	s.run("asker", `{"prompt": "Hi"}`) // rates need two values

	text, err := os.ReadFile("../../packaging/grafana-tea-serve.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$__interval", "1m", "$__range", "5m")
	for _, v := range dashboard.Templating.List {
		if m := regexp.MustCompile(`^label_values\((.*),\s*(\w+)\)$`).FindStringSubmatch(v.Query); m != nil {
			prom.await(m[1])
		}
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expr := regexp.MustCompile(`"\$\{?\w+\}?"`).ReplaceAllString(variables.Replace(target.Expr), `".*"`)
			t.Log(panel.Title + ": " + expr)
			prom.await(expr)
		}
	}
}

// However many workflows there are, and whatever their names are, the number of
// series is bounded, and Prometheus reads them.
func TestHostileNamesInPrometheus(t *testing.T) {
	t.Parallel()
	tools := peertest.Dir(t, "../..", "prometheus")
	files := map[string]string{}
	const workflows = 600 // more than have labels of their own
	for i := range workflows {
		name := fmt.Sprintf("a\"b\\\n{c=\"d\"} 1 é %d", i)
		if i%50 == 0 {
			name += strings.Repeat("x", 1000)
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf("w%d.yaml", i)] = "name: " + string(quoted) + "\nnodes: [{name: n}]\nserve: {triggers: [{at_start: true}]}\n"
	}
	s := newProject(t, files).serve("--durability", "exit")
	prom := newPrometheus(t, s, "20s") // a page of a megabyte, on a busy machine
	prom.await(fmt.Sprintf(`sum(tea_runs_total{status="done"}) == %d`, workflows))
	for _, name := range []string{"tea_runs_total", "tea_run_seconds_count", "tea_node_seconds_count", "tea_runs_running"} {
		if got := len(prom.query(name)); got < 100 || got > 501 {
			t.Errorf("%s has %d series", name, got)
		}
	}
	check := exec.CommandContext(t.Context(), filepath.Join(tools, "promtool"), "check", "metrics")
	check.Stdin = strings.NewReader(s.request("GET", "/metrics", "").text)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

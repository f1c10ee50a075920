package server

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Each metric of the dashboard exists, with the labels that the dashboard uses.
func TestDashboardShowsMetricsThatExist(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.metrics = newMetrics(s)
	descriptions := make(chan *prometheus.Desc, 1000)
	s.metrics.registry.Describe(descriptions)
	close(descriptions)
	labels := map[string]string{}
	parts := regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)
	for d := range descriptions {
		m := parts.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("description %s", d)
		}
		labels[m[1]] = "instance," + m[2]
	}
	text, err := os.ReadFile("../../../../packaging/grafana-tea-serve.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Query string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
		for _, target := range p.Targets {
			queries[target.Expr] = p.Title
		}
	}
	for _, v := range dashboard.Templating.List {
		queries[v.Query] = "variables"
	}
	shown := map[string]bool{}
	for query, title := range queries {
		for _, m := range regexp.MustCompile(`\b((?:tea|process|go)_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(query, -1) {
			name := m[1]
			if base := strings.TrimSuffix(name, "_bucket"); labels[name] == "" && strings.HasSuffix(base, "_seconds") {
				name = base
			}
			shown[name] = true
			if labels[name] == "" {
				t.Errorf("panel %q: the metric %s does not exist", title, m[1])
			}
			for _, use := range regexp.MustCompile(`(\w+)=`).FindAllStringSubmatch(m[2], -1) {
				if !regexp.MustCompile(`\b` + use[1] + `\b`).MatchString(labels[name]) {
					t.Errorf("panel %q: the metric %s has no label %s, but %s", title, name, use[1], labels[name])
				}
			}
		}
	}
	for name := range labels {
		if strings.HasPrefix(name, "tea_") && !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

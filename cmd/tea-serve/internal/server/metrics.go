package server

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/subproc"
	"github.com/the-edge-agent/tea/sdk/value"
)

const (
	// maxLabels is how many workflows, nodes and models have separate values; the
	// others share a label.
	maxLabels  = 500
	otherLabel = "other"
	// maxLabel is the maximum size of a label.
	maxLabel = 200
)

// labelSet bounds the values of labels. It is safe for concurrent use.
type labelSet struct {
	mu    sync.Mutex
	known map[string]bool
}

// has reports whether a combination of values has a separate label.
func (l *labelSet) has(values ...string) bool {
	key := strings.Join(values, "\x00")
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known[key] {
		if len(l.known) >= maxLabels {
			return false
		}
		if l.known == nil {
			l.known = map[string]bool{}
		}
		l.known[key] = true
	}
	return true
}

// label returns a text as the value of a label: UTF-8 of a bounded size.
func label(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return text[:value.WholeRunes(text[:min(len(text), maxLabel)])]
}

// metrics counts for Prometheus. It is safe for concurrent use.
type metrics struct {
	registry *prometheus.Registry
	runs     *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	nodes    *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	usd      *prometheus.CounterVec
	refused  *prometheus.CounterVec
	alerts   *prometheus.CounterVec
	models   *models
	// gathering has one place, for the request that gathers them.
	gathering chan struct{}

	workflows, nodeNames labelSet
}

func newMetrics(s *server) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: []float64{.001, .01, .1, 1, 10, 60, 600}}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(), models: newModels(), gathering: make(chan struct{}, 1),
		runs:    counter("tea_runs_total", "Attempts of runs that have ended, by status.", "workflow", "status"),
		seconds: histogram("tea_run_seconds", "Time of an attempt of a run.", "workflow"),
		nodes:   histogram("tea_node_seconds", "Time of a node.", "workflow", "node"),
		tokens:  counter("tea_tokens_total", "Tokens of requests to models.", "workflow"),
		usd:     counter("tea_cost_usd_total", "Cost of requests to models.", "workflow"),
		refused: counter("tea_refused_events_total", "Events of triggers that started no run.", "workflow"),
		alerts:  counter("tea_alerts_total", "Alerts by their delivery.", "result"),
	}
	m.alerts.WithLabelValues("lost") // a graph without alerts is a line at 0
	m.alerts.WithLabelValues("delivered")
	m.registry.MustRegister(m.runs, m.seconds, m.nodes, m.tokens, m.usd, m.refused, m.alerts, m.models.tokens, m.models.seconds, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &snapshot{s: s})
	return m
}

// event counts an event of a run.
func (m *metrics) event(workflow string, e flow.Event) {
	if e.Type != flow.EventNodeEnd {
		return
	}
	ms, ok := e.Field("duration_ms").(float64)
	if !ok {
		return
	}
	workflow, node := m.workflow(workflow), label(e.Node)
	if !m.nodeNames.has(workflow, node) {
		node = otherLabel
	}
	m.nodes.WithLabelValues(workflow, node).Observe(ms / 1000)
}

// workflow returns the label of a workflow.
func (m *metrics) workflow(name string) string {
	if name = label(name); m.workflows.has(name) {
		return name
	}
	return otherLabel
}

// ended counts the end of an attempt.
func (m *metrics) ended(workflow string, res *flow.Result, used flow.Usage) {
	workflow = m.workflow(workflow)
	status := string(flow.Failed)
	if res != nil {
		status = string(res.Status)
		m.seconds.WithLabelValues(workflow).Observe(res.Elapsed.Seconds())
	}
	m.runs.WithLabelValues(workflow, status).Inc()
	m.tokens.WithLabelValues(workflow).Add(float64(max(used.Tokens, 0)))
	m.usd.WithLabelValues(workflow).Add(max(used.USD, 0))
}

// gatherer returns the metrics for one request. Requests are served one after another,
// and those whose client is gone not at all: a client that gives up after a second and
// asks again would add more work each time, until no request ends within a second.
func (m *metrics) gatherer(ctx context.Context) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		select {
		case m.gathering <- struct{}{}:
			defer func() { <-m.gathering }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if ctx.Err() != nil { // both were ready
			return nil, context.Cause(ctx)
		}
		return m.registry.Gather()
	})
}

// snapshot collects the current state of the server.
type snapshot struct{ s *server }

var (
	runningDesc  = prometheus.NewDesc("tea_runs_running", "Runs that are running.", []string{"workflow"}, nil)
	queuedDesc   = prometheus.NewDesc("tea_runs_queued", "Runs that wait for their turn.", []string{"workflow"}, nil)
	parkedDesc   = prometheus.NewDesc("tea_runs_parked", "Runs that failed too often to be continued.", nil, nil)
	brokenDesc   = prometheus.NewDesc("tea_broken_files", "Workflow files with mistakes.", nil, nil)
	journalDesc  = prometheus.NewDesc("tea_journal_bytes", "Size of the checkpoints and events of runs.", nil, nil)
	callsDesc    = prometheus.NewDesc("tea_plugin_calls_total", "Calls of a plugin.", []string{"plugin"}, nil)
	failuresDesc = prometheus.NewDesc("tea_plugin_failures_total", "Calls of a plugin that failed.", []string{"plugin"}, nil)
	crashesDesc  = prometheus.NewDesc("tea_plugin_crashes_total", "Crashes of a plugin.", []string{"plugin"}, nil)
	rssDesc      = prometheus.NewDesc("tea_plugin_resident_bytes", "Memory of a plugin.", []string{"plugin"}, nil)
)

// Describe implements [prometheus.Collector].
func (c *snapshot) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{runningDesc, queuedDesc, parkedDesc, brokenDesc, journalDesc, callsDesc, failuresDesc, crashesDesc, rssDesc} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *snapshot) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	for name, n := range c.s.loads(c.s.metrics.workflow) {
		gauge(runningDesc, float64(n.running), name)
		gauge(queuedDesc, float64(n.queued), name)
	}
	gauge(parkedDesc, float64(c.s.parkedRuns()))
	gauge(brokenDesc, float64(len(c.s.catalog.Problems())))
	gauge(journalDesc, float64(journalBytes(c.s.svc.Runs)))
	plugins, _ := c.s.svc.PluginStatus().([]subproc.Status)
	for _, p := range plugins {
		counter(callsDesc, float64(p.Calls), p.Name)
		counter(failuresDesc, float64(p.Failures), p.Name)
		counter(crashesDesc, float64(p.Crashes), p.Name)
		gauge(rssDesc, float64(p.RSSBytes), p.Name)
	}
}

// load is the number of running and queued runs of a workflow.
type load struct{ running, queued int }

// loads returns the loads of the workflows, by label.
func (s *server) loads(label func(string) string) map[string]load {
	s.mu.Lock()
	defer s.mu.Unlock()
	loads := map[string]load{}
	for name, ln := range s.lines {
		name := label(name)
		sum := loads[name]
		loads[name] = load{sum.running + len(ln.running), sum.queued + len(ln.ready) + ln.entering}
	}
	return loads
}

func (s *server) parkedRuns() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.led.state.items {
		if it.Parked != "" {
			n++
		}
	}
	return n
}

// journalBytes returns the size of the files of runs.
func journalBytes(dir string) (size int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0 // there are no runs
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".tea") && !strings.HasSuffix(e.Name(), ".events.jsonl") {
			continue
		}
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// recordProgress records progress of the scheduler, for the watchdog.
func (s *server) recordProgress() { s.lastBeat.Store(time.Now().UnixNano()) }

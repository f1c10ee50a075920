package server

import (
	"cmp"
	"context"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/the-edge-agent/tea/host/trace"
)

// sendMetrics sends the metrics to the collector until the server has ended, and
// once more at the end.
func (s *server) sendMetrics() {
	ticker := time.NewTicker(s.flags.MetricsInterval)
	defer ticker.Stop()
	failing := false
	for open := true; open; {
		select {
		case <-ticker.C:
		case <-s.ended:
			if open = false; failing {
				return
			}
		}
		sending, cancel := context.WithTimeout(context.Background(), maxMetricsWait)
		err := s.sendMetricsOnce(sending)
		cancel()
		switch {
		case err != nil && !failing: // one line per outage
			s.svc.Log.Warn("the metrics did not reach the collector", "error", err)
		case err == nil && failing:
			s.svc.Log.Warn("the collector accepts metrics again")
		}
		failing = err != nil
	}
}

// maxMetricsWait is how long the collector has to accept metrics.
const maxMetricsWait = 5 * time.Second

func (s *server) sendMetricsOnce(ctx context.Context) error {
	families, err := s.metrics.registry.Gather()
	if err != nil {
		return err
	}
	return s.svc.Collector.SendMetrics(ctx, s.started, toMetrics(families))
}

// toMetrics converts Prometheus metrics. They keep their names, except for those
// of OpenTelemetry's conventions.
func toMetrics(families []*dto.MetricFamily) []trace.Metric {
	list := make([]trace.Metric, 0, len(families))
	for _, f := range families {
		m := trace.Metric{
			Name: cmp.Or(otelNames[f.GetName()], f.GetName()), Description: f.GetHelp(), Unit: otelUnits[f.GetName()],
			Points: make([]trace.Point, len(f.GetMetric())),
		}
		for i, one := range f.GetMetric() {
			p := &m.Points[i]
			p.Attributes = map[string]any{}
			for _, l := range one.GetLabel() {
				if l.GetValue() != "" { // as in Prometheus, an empty label is absent
					p.Attributes[cmp.Or(otelNames[l.GetName()], l.GetName())] = l.GetValue()
				}
			}
			m.Kind = values(f.GetType(), one, p)
		}
		list = append(list, m)
	}
	return list
}

// values sets the values of a point.
func values(kind dto.MetricType, one *dto.Metric, p *trace.Point) trace.MetricKind {
	switch kind {
	case dto.MetricType_COUNTER:
		p.Value = one.GetCounter().GetValue()
		return trace.Counter
	case dto.MetricType_HISTOGRAM:
		h := one.GetHistogram()
		p.Count, p.Sum = h.GetSampleCount(), h.GetSampleSum()
		below := uint64(0) // Prometheus buckets are cumulative
		for _, b := range h.GetBucket() {
			p.Bounds = append(p.Bounds, b.GetUpperBound())
			p.Counts = append(p.Counts, b.GetCumulativeCount()-below)
			below = b.GetCumulativeCount()
		}
		p.Counts = append(p.Counts, p.Count-below)
		return trace.Histogram
	case dto.MetricType_SUMMARY:
		q := one.GetSummary()
		p.Count, p.Sum, p.Quantiles = q.GetSampleCount(), q.GetSampleSum(), map[float64]float64{}
		for _, v := range q.GetQuantile() {
			p.Quantiles[v.GetQuantile()] = v.GetValue()
		}
		return trace.Summary
	default:
		p.Value = one.GetGauge().GetValue()
		return trace.Gauge
	}
}

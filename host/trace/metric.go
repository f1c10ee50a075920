package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// Metric is a metric with its current values, in the terms of OpenTelemetry.
type Metric struct {
	Name, Description, Unit string
	Kind                    MetricKind
	Points                  []Point
}

// MetricKind determines the fields of a metric's points.
type MetricKind int

// The kinds of metrics. The values of all except gauges add up since the start.
const (
	// Gauge has a Value.
	Gauge MetricKind = iota
	// Counter has a Value that never decreases.
	Counter
	// Histogram has Count, Sum, Bounds and Counts.
	Histogram
	// Summary has Count, Sum and Quantiles.
	Summary
)

// Point is the value of a metric with some attributes.
type Point struct {
	Attributes map[string]any
	Value      float64
	Count      uint64
	Sum        float64
	// Bounds are the upper bounds of the buckets, without infinity. Counts has one
	// more element: the numbers of values in each bucket.
	Bounds []float64
	Counts []uint64
	// Quantiles are values by quantile, from 0 to 1.
	Quantiles map[float64]float64
}

// The messages of metrics in OTLP's JSON form.
type (
	otlpMetrics struct {
		ResourceMetrics []otlpResourceMetrics `json:"resourceMetrics"`
	}
	otlpResourceMetrics struct {
		Resource     otlpResource       `json:"resource"`
		ScopeMetrics []otlpScopeMetrics `json:"scopeMetrics"`
	}
	otlpScopeMetrics struct {
		Scope   otlpScope    `json:"scope"`
		Metrics []otlpMetric `json:"metrics"`
	}
	otlpMetric struct {
		Name        string    `json:"name"`
		Description string    `json:"description,omitempty"`
		Unit        string    `json:"unit,omitempty"`
		Gauge       *otlpData `json:"gauge,omitempty"`
		Sum         *otlpData `json:"sum,omitempty"`
		Histogram   *otlpData `json:"histogram,omitempty"`
		Summary     *otlpData `json:"summary,omitempty"`
	}
	otlpData struct {
		Points      []otlpPoint `json:"dataPoints"`
		Temporality int         `json:"aggregationTemporality,omitempty"`
		Monotonic   bool        `json:"isMonotonic,omitempty"`
	}
	otlpPoint struct {
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Start      string          `json:"startTimeUnixNano,omitempty"`
		Time       string          `json:"timeUnixNano"`
		Value      any             `json:"asDouble,omitempty"`
		Count      string          `json:"count,omitempty"`
		Sum        any             `json:"sum,omitempty"`
		Bounds     []float64       `json:"explicitBounds,omitempty"`
		Counts     []string        `json:"bucketCounts,omitempty"`
		Quantiles  []otlpQuantile  `json:"quantileValues,omitempty"`
	}
	otlpQuantile struct {
		Quantile float64 `json:"quantile"`
		Value    any     `json:"value"`
	}
)

// cumulative is the temporality of values that add up since the start.
const cumulative = 2

// SendMetrics sends the current values of metrics. It does not retry, because later values
// replace them. start is the time since which cumulative values add up. The error reports
// that the collector did not accept the values.
func (c *Collector) SendMetrics(ctx context.Context, start time.Time, metrics []Metric) error {
	now := time.Now()
	list := make([]otlpMetric, len(metrics))
	for i, m := range metrics {
		list[i] = toMetric(m, nanoseconds(start), nanoseconds(now))
	}
	scope := otlpScopeMetrics{Scope: otlpScope{scopeName}, Metrics: list}
	body, err := json.Marshal(otlpMetrics{[]otlpResourceMetrics{{Resource: c.resource, ScopeMetrics: []otlpScopeMetrics{scope}}}})
	if err != nil {
		return fmt.Errorf("encode metrics: %w", err)
	}
	return c.send(ctx, "metrics", body, 1)
}

func toMetric(m Metric, start, now string) otlpMetric {
	data := &otlpData{Points: make([]otlpPoint, len(m.Points))}
	for i, p := range m.Points {
		o := otlpPoint{Attributes: toAttributes(p.Attributes), Time: now}
		if m.Kind != Gauge {
			o.Start = start
		}
		switch m.Kind {
		case Gauge, Counter:
			o.Value = number(p.Value)
		case Histogram, Summary:
			o.Count, o.Sum, o.Bounds = strconv.FormatUint(p.Count, 10), number(p.Sum), p.Bounds
			for _, n := range p.Counts {
				o.Counts = append(o.Counts, strconv.FormatUint(n, 10))
			}
			for _, q := range slices.Sorted(maps.Keys(p.Quantiles)) {
				o.Quantiles = append(o.Quantiles, otlpQuantile{q, number(p.Quantiles[q])})
			}
		}
		data.Points[i] = o
	}
	o := otlpMetric{Name: m.Name, Description: m.Description, Unit: m.Unit}
	switch m.Kind {
	case Gauge:
		o.Gauge = data
	case Counter:
		data.Temporality, data.Monotonic = cumulative, true
		o.Sum = data
	case Histogram:
		data.Temporality = cumulative
		o.Histogram = data
	case Summary:
		o.Summary = data
	}
	return o
}

// number returns a value that JSON can encode: OTLP represents infinity and NaN as
// strings.
func number(v float64) any {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return v
}

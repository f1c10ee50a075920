package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/the-edge-agent/tea/host/trace"
	tea "github.com/the-edge-agent/tea/sdk"
)

// models counts model calls, with the names and buckets of OpenTelemetry's
// conventions for generative AI. Prometheus uses _ in place of dots.
type models struct {
	tokens  *prometheus.HistogramVec
	seconds *prometheus.HistogramVec
	known   labelSet
}

// otelNames maps Prometheus names to OpenTelemetry names where they differ.
var otelNames = map[string]string{
	"gen_ai_client_token_usage": "gen_ai.client.token.usage", "gen_ai_client_operation_duration_seconds": "gen_ai.client.operation.duration",
	"gen_ai_operation_name": "gen_ai.operation.name", "gen_ai_provider_name": "gen_ai.provider.name", "gen_ai_request_model": "gen_ai.request.model",
	"gen_ai_token_type": "gen_ai.token.type", "error_type": "error.type",
}

// otelUnits are the units of metrics, by Prometheus name.
var otelUnits = map[string]string{
	"gen_ai_client_token_usage": "{token}", "gen_ai_client_operation_duration_seconds": "s", "tea_run_seconds": "s", "tea_node_seconds": "s",
	"tea_journal_bytes": "By", "tea_plugin_resident_bytes": "By", "process_resident_memory_bytes": "By", "process_cpu_seconds_total": "s",
}

func newModels() *models {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		labels = append([]string{"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"}, labels...)
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	return &models{
		tokens: histogram("gen_ai_client_token_usage", "Tokens of a request to a model.",
			prometheus.ExponentialBuckets(1, 4, 14), "gen_ai_token_type"),
		seconds: histogram("gen_ai_client_operation_duration_seconds", "Time of a request to a model.",
			prometheus.ExponentialBuckets(.01, 2, 14), "error_type"),
	}
}

// invoke makes a call, and measures it if it calls a model.
func (m *models) invoke(ctx context.Context, req *tea.Request, next func(context.Context, *tea.Request) (*tea.Response, error)) (*tea.Response, error) {
	operation := trace.ModelOperation(req.Action)
	if operation == "" {
		return next(ctx, req)
	}
	begun := time.Now()
	resp, err := next(ctx, req)
	elapsed := time.Since(begun)
	var result map[string]any
	if resp != nil {
		result = object(resp.Result)
	}
	asked := object(req.Params)
	model, provider := text(asked["model"], result["model"]), text(result["provider"], asked["provider"])
	errorType := ""
	if failure := tea.AsError(err); failure != nil {
		errorType = label(string(failure.Type))
	}
	if !m.known.has(model, provider, errorType) {
		model, provider = otherLabel, otherLabel
		if errorType != "" {
			errorType = otherLabel
		}
	}
	m.seconds.WithLabelValues(operation, provider, model, errorType).Observe(elapsed.Seconds())
	usage, _ := result["usage"].(map[string]any)
	for _, kind := range []string{"input", "output"} {
		if n, ok := usage[kind+"_tokens"].(int64); ok && n > 0 {
			m.tokens.WithLabelValues(operation, provider, model, kind).Observe(float64(n))
		}
	}
	return resp, err
}

// object decodes a payload that is an object.
func object(p tea.Payload) map[string]any {
	v, err := p.Shared()
	if err != nil {
		return nil
	}
	m, _ := v.(map[string]any)
	return m
}

// text returns the first of two values that is a non-empty string, or "unknown".
func text(first, second any) string {
	for _, v := range []any{first, second} {
		if s, _ := v.(string); s != "" {
			return label(s)
		}
	}
	return "unknown"
}

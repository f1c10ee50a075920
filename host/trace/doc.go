// Package trace turns a run's events into spans and exports them: as a tree on the
// console, as JSON lines in a file, or to a collector over OTLP/HTTP.
//
//	tracer, err := trace.New(trace.Options{File: "spans.jsonl"})
//	...
//	defer tracer.Close(ctx)
//	res, err := wf.Run(ctx, host.RunOptions{Events: tracer.Event})
//
// The run is the root span, with nodes, branches, retries and the spans of trace.start
// below it. The identifiers are the same as in the W3C trace context that plugins get, so
// that the plugins' spans are part of the tree. [Tracer.Invoke] adds the calls of
// actions.
//
// The package implements OTLP itself, in a few hundred lines: OpenTelemetry's SDK and
// exporter would add several MB to a small binary.
//
// Start with [New].
package trace

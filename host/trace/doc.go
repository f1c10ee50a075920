// Package trace turns a run's events into spans and exports them: as a tree
// on the console, as JSON lines in a file, to a collector over OTLP/HTTP.
//
//	tracer, err := trace.New(trace.Options{File: "spans.jsonl"})
//	...
//	defer tracer.Close(ctx)
//	res, err := wf.Run(ctx, host.RunOptions{Events: tracer.Event})
//
// The run is the root span; nodes, branches, retries and what trace.start
// opens are below it. The identifiers are those that plugins get as their
// W3C trace context, so that their own spans join the tree. [Tracer.Invoke]
// adds the calls of actions.
//
// It speaks OTLP itself, in a few hundred lines: OpenTelemetry's SDK and
// exporter would add several MB to a small binary.
//
// Start with [New].
package trace

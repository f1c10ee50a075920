// Package tracecontext derives the W3C trace context of a run's executions. The
// identifiers are derived from the run's id and the execution's path, so that the
// engine, which passes them to plugins, and the tracer, which exports spans, use
// the same ones, and a resumed run continues its trace.
//
// Start with [TraceOf], [SpanOf] and [Trace.Parent].
package tracecontext

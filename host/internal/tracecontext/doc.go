// Package tracecontext derives the W3C trace context of a run's executions. The
// identifiers follow from the run's id and the execution's path, so that the
// engine that hands them to plugins and the tracer that exports spans agree
// without a word, and a resumed run continues its old trace.
//
// Start with [TraceOf], [SpanOf] and [Trace.Parent].
package tracecontext

// Package traceactions is the host's bundle trace: trace.start, trace.log and
// trace.end. The actions emit log events of the run with a [Mark], which the
// tracer (package host/trace) turns into spans. Start with [Bundle].
package traceactions

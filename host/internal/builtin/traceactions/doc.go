// Package traceactions is the host's bundle trace: trace.start, trace.log and
// trace.end. The actions say what they do in log events of the run, whose
// [Mark] the tracer (package host/trace) turns into spans. Start with [Bundle].
package traceactions

package tracecontext

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
)

// Trace identifies a trace: one run including its resumptions.
type Trace [16]byte

// Span identifies a span within a trace. The zero value means no span.
type Span [8]byte

// TraceOf returns the trace of a run.
func TraceOf(runID string) Trace {
	sum := sha256.Sum256([]byte(runID))
	return Trace(sum[:16])
}

// SpanOf returns the span of an attempt, counted from 1, of the execution at a path.
func SpanOf(path string, attempt int) Span {
	sum := fnv.New64a()
	sum.Write([]byte(path))
	sum.Write([]byte{byte(attempt), byte(attempt >> 8)})
	return Span(sum.Sum(make([]byte, 0, 8)))
}

// String returns the trace in hexadecimal.
func (t Trace) String() string { return hex.EncodeToString(t[:]) }

// String returns the span in hexadecimal.
func (s Span) String() string { return hex.EncodeToString(s[:]) }

// ParseSpan reads the hexadecimal form.
func ParseSpan(text string) (s Span, ok bool) {
	if len(text) != 2*len(s) {
		return s, false
	}
	_, err := hex.Decode(s[:], []byte(text))
	return s, err == nil
}

// Parent returns the value of a traceparent header with the span as the caller's,
// sampled.
func (t Trace) Parent(s Span) string {
	return string(t.AppendParent(make([]byte, 0, 55), s))
}

// AppendParent appends [Trace.Parent] to b.
func (t Trace) AppendParent(b []byte, s Span) []byte {
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, t[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, s[:])
	return append(b, "-01"...)
}

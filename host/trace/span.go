package trace

import (
	"time"

	"github.com/the-edge-agent/tea/host/internal/tracecontext"
	"github.com/the-edge-agent/tea/sdk/value"
)

// span is one unit of work. It belongs to the tracer until it ends, then to the exporters,
// which do not change it.
type span struct {
	trace      tracecontext.Trace
	id, parent tracecontext.Span
	name       string
	kind       spanKind
	start, end time.Time
	attributes map[string]any
	entries    []entry
	failed     bool
	// message is the reason of the failure.
	message string

	// action is the action of an action node; its call adds to the node's span.
	action string
	// again is the current retry of a node or branch. The first attempt is the span
	// itself.
	again *span
	// tokens collects a model's tokens.
	tokens []byte
}

// spanKind is a span's kind as an OTLP number.
type spanKind int

const (
	kindInternal spanKind = 1
	kindClient   spanKind = 3
)

// entry is an event during a span.
type entry struct {
	time       time.Time
	name       string
	attributes map[string]any
}

func (s *span) set(key string, v any) {
	if v == nil || v == "" {
		return
	}
	if s.attributes == nil {
		s.attributes = map[string]any{}
	}
	s.attributes[key] = v
}

func (s *span) note(at time.Time, name string, attributes map[string]any) {
	s.entries = append(s.entries, entry{time: at, name: name, attributes: attributes})
}

// exception is the name of the entry for an error.
const exception = "exception"

// fail marks the span as failed, with OpenTelemetry's attributes for errors.
func (s *span) fail(at time.Time, errorType, message string) {
	s.failed, s.message = true, message
	s.set("error.type", errorType)
	s.note(at, exception, map[string]any{"exception.type": errorType, "exception.message": message})
}

// latest returns the current attempt.
func (s *span) latest() *span {
	if s.again != nil {
		return s.again
	}
	return s
}

func (s *span) elapsed() time.Duration { return s.end.Sub(s.start) }

// size returns the approximate size of the span in memory.
func (s *span) size() int64 {
	n := 500 + sizeOf(s.attributes)
	for _, e := range s.entries {
		n += 100 + sizeOf(e.attributes)
	}
	return int64(n)
}

func sizeOf(v any) (n int) {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		for _, e := range v {
			n += 16 + sizeOf(e)
		}
	case map[string]any:
		for k, e := range v {
			n += 48 + len(k) + sizeOf(e)
		}
	}
	return n
}

// text returns a string field.
func text(fields map[string]any, key string) string {
	s, _ := fields[key].(string)
	return s
}

// milliseconds returns the duration in a field.
func milliseconds(fields map[string]any, key string) time.Duration {
	switch v := fields[key].(type) {
	case float64:
		return time.Duration(v * float64(time.Millisecond))
	case int64:
		return time.Duration(v) * time.Millisecond
	}
	return 0
}

// mostContent bounds the text of one attribute.
const mostContent = 16 << 10

// content returns a value as the JSON text of an attribute.
func content(v any) string {
	raw, err := value.Encode(v)
	if err != nil {
		return ""
	}
	return clip(string(raw))
}

// clip shortens a text to a whole number of runes.
func clip(s string) string {
	if len(s) <= mostContent {
		return s
	}
	return s[:value.WholeRunes(s[:mostContent])] + "…"
}

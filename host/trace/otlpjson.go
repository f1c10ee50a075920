package trace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/the-edge-agent/tea/host/internal/tracecontext"
)

// The messages of OTLP in their JSON form: identifiers in hexadecimal, 64-bit
// integers as strings, enumerations as numbers.
type (
	otlpTraces struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpScope struct {
		Name string `json:"name"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		ParentID   string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       spanKind        `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Events     []otlpEvent     `json:"events,omitempty"`
		Status     otlpStatus      `json:"status"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpStatus struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string     `json:"stringValue,omitempty"`
		Bool   *bool       `json:"boolValue,omitempty"`
		Int    *string     `json:"intValue,omitempty"`
		Double *float64    `json:"doubleValue,omitempty"`
		Array  *otlpArray  `json:"arrayValue,omitempty"`
		Object *otlpObject `json:"kvlistValue,omitempty"`
	}
	otlpArray struct {
		Values []otlpValue `json:"values"`
	}
	otlpObject struct {
		Values []otlpAttribute `json:"values"`
	}
)

// scopeName is the instrumentation scope of the spans and metrics.
const scopeName = "github.com/the-edge-agent/tea"

// statusError is the status code of a failed span.
const statusError = 2

func resourceOf(version, instance string) otlpResource {
	attributes := map[string]any{"service.name": "tea"}
	if version != "" {
		attributes["service.version"] = version
	}
	if instance != "" {
		attributes["service.instance.id"] = instance
	}
	return otlpResource{toAttributes(attributes)}
}

// encode encodes spans as one request to a collector, which is also one line of a file.
func encode(resource otlpResource, spans ...*span) ([]byte, error) {
	list := make([]otlpSpan, len(spans))
	for i, s := range spans {
		list[i] = toOTLP(s)
	}
	scope := otlpScopeSpans{Scope: otlpScope{scopeName}, Spans: list}
	raw, err := json.Marshal(otlpTraces{[]otlpResourceSpans{{Resource: resource, ScopeSpans: []otlpScopeSpans{scope}}}})
	if err != nil {
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	return raw, nil
}

func toOTLP(s *span) otlpSpan {
	o := otlpSpan{
		TraceID: s.trace.String(), SpanID: s.id.String(), Name: s.name, Kind: s.kind,
		Start: nanoseconds(s.start), End: nanoseconds(s.end), Attributes: toAttributes(s.attributes),
	}
	if s.parent != (tracecontext.Span{}) {
		o.ParentID = s.parent.String()
	}
	if s.failed {
		o.Status = otlpStatus{statusError, s.message}
	}
	for _, e := range s.entries {
		o.Events = append(o.Events, otlpEvent{nanoseconds(e.time), e.name, toAttributes(e.attributes)})
	}
	return o
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// toAttributes converts a map, sorted by key.
func toAttributes(m map[string]any) []otlpAttribute {
	list := make([]otlpAttribute, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, otlpAttribute{key, toValue(m[key])})
	}
	return list
}

// toValue converts a value of the model; null is the empty message.
func toValue(v any) otlpValue {
	switch v := v.(type) {
	case nil:
		return otlpValue{}
	case string:
		return otlpValue{String: &v}
	case bool:
		return otlpValue{Bool: &v}
	case int64:
		digits := strconv.FormatInt(v, 10)
		return otlpValue{Int: &digits}
	case float64:
		return otlpValue{Double: &v}
	case []any:
		values := make([]otlpValue, len(v))
		for i, e := range v {
			values[i] = toValue(e)
		}
		return otlpValue{Array: &otlpArray{values}}
	case map[string]any:
		return otlpValue{Object: &otlpObject{toAttributes(v)}}
	}
	other := fmt.Sprint(v) // json.Number: an integer beyond 64 bits
	return otlpValue{String: &other}
}

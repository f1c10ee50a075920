package traceactions

// Mark is the meaning of a log event for the trace. It is in the event's fields
// under [MarkKey].
type Mark struct {
	// Kind is start, log or end.
	Kind string
	// SpanID is the span that begins, ends or gets the entry; "" is the span of
	// the node.
	SpanID string
	// Name and Attributes describe a span that begins.
	Name       string
	Attributes map[string]any
	// Failed marks an ending span as failed; Error is the reason.
	Failed bool
	Error  string
}

// The kinds of marks.
const (
	Start = "start"
	Log   = "log"
	End   = "end"
)

// MarkKey is the field of a log event with its mark.
const MarkKey = "trace"

// fields returns the mark as a field of a log event.
func (m Mark) fields() map[string]any {
	fields := map[string]any{"kind": m.Kind, "span_id": m.SpanID}
	if m.Name != "" {
		fields["name"] = m.Name
	}
	if len(m.Attributes) > 0 {
		fields["attributes"] = m.Attributes
	}
	if m.Failed {
		fields["failed"], fields["error"] = true, m.Error
	}
	return fields
}

// MarkOf returns the mark in a log event's fields.
func MarkOf(fields map[string]any) (m Mark, ok bool) {
	f, ok := fields[MarkKey].(map[string]any)
	if !ok {
		return m, false
	}
	m.Kind, _ = f["kind"].(string)
	m.SpanID, _ = f["span_id"].(string)
	m.Name, _ = f["name"].(string)
	m.Attributes, _ = f["attributes"].(map[string]any)
	m.Failed, _ = f["failed"].(bool)
	m.Error, _ = f["error"].(string)
	return m, m.Kind == Start || m.Kind == Log || m.Kind == End
}

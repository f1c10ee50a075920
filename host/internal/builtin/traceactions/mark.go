package traceactions

// Mark says what a log event means for the trace. It stands in the event's
// fields under [MarkKey].
type Mark struct {
	// Kind is start, log or end.
	Kind string
	// SpanID is the span that begins, ends or gets the entry; "" is the node's own.
	SpanID string
	// Name and Attributes describe a span that begins.
	Name       string
	Attributes map[string]any
	// Error is why a span that ends failed; Failed says that it did.
	Failed bool
	Error  string
}

// The kinds of marks.
const (
	Start = "start"
	Log   = "log"
	End   = "end"
)

// MarkKey is the field of a log event that holds its mark.
const MarkKey = "trace"

// fields is the mark as a field of a log event.
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

// MarkOf reads the mark out of a log event's fields.
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

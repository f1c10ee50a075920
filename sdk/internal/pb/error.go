package pb

import (
	"fmt"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// FromError converts an action's failure to the wire; nil stays nil.
func FromError(err error) *Error {
	e := tea.AsError(err)
	if e == nil {
		return nil
	}
	out := &Error{Type: Text(string(e.Type)), Message: Text(e.Message), Retryable: e.Retryable, Source: Text(e.Source)}
	if e.RetryAfter > 0 {
		out.RetryAfterMs = int64((e.RetryAfter + time.Millisecond - 1) / time.Millisecond)
	}
	if len(e.Details) > 0 {
		out.DetailsJson = fromFields(e.Details)
	}
	return out
}

// maxMessage is the maximum length of a failure's message, which is printed and
// stored with the run more than once.
const maxMessage = 16 << 10

// maxWait is the longest wait that a failure can ask for. Much longer ones would
// overflow a duration.
const maxWait = 24 * time.Hour

// ToError converts an action's failure from the wire; nil stays nil. A failure
// without a type is an internal_error.
func ToError(e *Error) *tea.Error {
	if e == nil {
		return nil
	}
	out := &tea.Error{Type: tea.ErrorType(e.GetType()), Message: e.GetMessage(), Retryable: e.GetRetryable(), Source: e.GetSource()}
	if out.Type == "" {
		out.Type = tea.InternalError
	}
	switch n := len(out.Message); {
	case n == 0:
		out.Message = "the plugin returned an error without a message"
	case n > maxMessage:
		out.Message = fmt.Sprintf("%s... (%d more bytes)", Text(out.Message[:maxMessage]), n-maxMessage)
	}
	out.RetryAfter = time.Duration(min(max(e.GetRetryAfterMs(), 0), maxWait.Milliseconds())) * time.Millisecond
	out.Details = toFields(e.GetDetailsJson())
	return out
}

// fromFields encodes free fields.
func fromFields(fields map[string]any) []byte {
	raw, err := value.Encode(value.Fields(fields))
	if err != nil {
		return nil // impossible: everything is in the value model
	}
	return raw
}

// toFields decodes free fields. Anything that is not a JSON object is kept as text.
func toFields(raw []byte) map[string]any {
	if len(raw) == 0 {
		return nil
	}
	v, err := value.Decode(raw)
	if err != nil {
		return map[string]any{"text": string(raw)}
	}
	if fields, ok := v.(map[string]any); ok {
		return fields
	}
	return map[string]any{"value": v}
}

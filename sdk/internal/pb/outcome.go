package pb

import (
	"encoding/json"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
)

// FromPayload encodes a payload for the wire; what names it in errors. A
// payload that is too large or has no JSON form is a validation_error.
func FromPayload(p tea.Payload, what string) ([]byte, error) {
	raw, err := p.JSON()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%s: %v", what, err)
	}
	if len(raw) > tea.MaxPayload {
		return nil, tooLarge(raw, what)
	}
	return raw, nil
}

func tooLarge(raw []byte, what string) error {
	return tea.Errorf(tea.ValidationError, "%s: %d bytes are more than the limit of %d (64 MiB)", what, len(raw), tea.MaxPayload)
}

// ToParams converts the parameters or the result of a call, which are checked
// when they are decoded; no bytes are null.
func ToParams(raw []byte, what string) (tea.Payload, error) {
	if len(raw) > tea.MaxPayload {
		return tea.Payload{}, tooLarge(raw, what)
	}
	if len(raw) == 0 {
		return tea.Payload{}, nil
	}
	return tea.RawPayload(raw), nil
}

// ToPayload checks bytes from the wire; no bytes are null.
func ToPayload(raw []byte, what string) (tea.Payload, error) {
	payload, err := ToParams(raw, what)
	if err == nil && len(raw) > 0 && !json.Valid(raw) {
		return tea.Payload{}, tea.Errorf(tea.InternalError, "%s: not JSON: %s", what, excerpt(raw))
	}
	return payload, err
}

// excerpt returns the beginning of untrusted bytes, quoted.
func excerpt(raw []byte) string {
	if len(raw) > 80 {
		return fmt.Sprintf("%.80q...", raw)
	}
	return fmt.Sprintf("%q", raw)
}

// FromOutcome encodes the end of a call: err, or resp's result.
func FromOutcome(action string, resp *tea.Response, err error) *InvokeResponse {
	var raw []byte
	if err == nil {
		if raw, err = FromPayload(resp.Result, "result of "+action); err != nil {
			e := tea.AsError(err)
			e.Details = map[string]any{"invalid_result": true}
			err = e
		}
	}
	if err != nil {
		return &InvokeResponse{Outcome: &InvokeResponse_Error{Error: FromError(err)}}
	}
	return &InvokeResponse{Outcome: &InvokeResponse_Result{Result: raw}}
}

// ToOutcome decodes the end of a call. The result is checked when it is
// decoded.
func ToOutcome(action string, r *InvokeResponse) (*tea.Response, error) {
	switch o := r.GetOutcome().(type) {
	case *InvokeResponse_Error:
		return nil, ToError(o.Error)
	case *InvokeResponse_Result:
		payload, err := ToParams(o.Result, "result of "+action)
		if err != nil {
			return nil, err
		}
		return &tea.Response{Result: payload}, nil
	}
	return nil, tea.Errorf(tea.InternalError, "%s returned neither a result nor an error", action)
}

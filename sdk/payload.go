package tea

import (
	"encoding/json"
	"fmt"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Payload is a JSON value that is passed between host and action. It has the bytes
// from the wire, or the Go value that was passed inside one process, and converts
// them when the other form is needed; [Payload.Encoded] has both. The zero value is
// null. A Payload is immutable and safe for concurrent use.
type Payload struct {
	raw   json.RawMessage
	value any
}

// RawPayload returns a payload with JSON text. The bytes are not checked; they
// must not be changed afterwards.
func RawPayload(raw []byte) Payload { return Payload{raw: raw} }

// ValuePayload returns a payload with a Go value: one of the value model (see
// package value) or anything that encoding/json can marshal. It must not be
// changed afterwards.
func ValuePayload(v any) Payload { return Payload{value: v} }

// AsPayload returns v if it is a payload, otherwise [ValuePayload] of it.
func AsPayload(v any) Payload {
	if p, ok := v.(Payload); ok {
		return p
	}
	return ValuePayload(v)
}

// Encoded returns the payload with its JSON text, so that repeated calls of
// [Payload.JSON] encode it once.
func (p Payload) Encoded() (Payload, error) {
	raw, err := p.JSON()
	if err != nil {
		return p, err
	}
	p.raw = raw
	return p, nil
}

// JSON returns the value as JSON text. The bytes must not be changed.
func (p Payload) JSON() ([]byte, error) {
	if p.raw != nil {
		return p.raw, nil
	}
	switch p.value.(type) {
	case nil, bool, int64, float64, string, []any, map[string]any:
		if raw, err := value.Encode(p.value); err == nil {
			return raw, nil
		}
	}
	v, err := value.From(p.value)
	if err != nil {
		return nil, err
	}
	return value.Encode(v)
}

// Value returns the value in the value model. The caller owns it.
func (p Payload) Value() (any, error) {
	if p.isText() {
		return value.Decode(p.raw)
	}
	return value.From(p.value)
}

// Shared is [Payload.Value] without a copy if the payload is already in the value
// model: the result can be shared and must not be changed.
func (p Payload) Shared() (any, error) {
	if !p.isText() && inModel(p.value) {
		return p.value, nil
	}
	return p.Value()
}

// Decode stores the value in the variable that v points to (see [value.Into]).
func (p Payload) Decode(v any) error {
	shared, err := p.Shared()
	if err == nil {
		err = value.Into(shared, v)
	}
	if err != nil {
		return fmt.Errorf("decode payload: %w", err)
	}
	return nil
}

// isText reports whether the payload has only JSON text.
func (p Payload) isText() bool { return p.raw != nil && p.value == nil }

// inModel reports whether v consists only of types of the value model.
func inModel(v any) bool {
	switch v := v.(type) {
	case nil, bool, int64, float64, string, json.Number:
		return true
	case []any:
		for _, e := range v {
			if !inModel(e) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, e := range v {
			if !inModel(e) {
				return false
			}
		}
		return true
	}
	return false
}

package tea

import (
	"encoding/json"
	"fmt"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Payload is a JSON value on its way between host and action. It is held as
// the bytes that came over the wire or as the Go value that was handed over
// inside one process, and converted only when the other form is asked for;
// [Payload.Encoded] holds both. The zero value is null. A Payload is immutable and safe for concurrent use.
type Payload struct {
	raw   json.RawMessage
	value any
}

// RawPayload wraps JSON text. The bytes are not checked here; they must not
// be changed afterwards.
func RawPayload(raw []byte) Payload { return Payload{raw: raw} }

// ValuePayload wraps a Go value: one of the value model (see package value)
// or anything that encoding/json can marshal. It must not be changed afterwards.
func ValuePayload(v any) Payload { return Payload{value: v} }

// AsPayload gives v as a payload: itself where it is one already,
// [ValuePayload] of it otherwise.
func AsPayload(v any) Payload {
	if p, ok := v.(Payload); ok {
		return p
	}
	return ValuePayload(v)
}

// Encoded returns the payload with its JSON text, so that it is encoded once
// however often [Payload.JSON] is called.
func (p Payload) Encoded() (Payload, error) {
	raw, err := p.JSON()
	if err != nil {
		return p, err
	}
	p.raw = raw
	return p, nil
}

// JSON gives the value as JSON text. The bytes must not be changed.
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

// Value gives the value in the value model, as a copy that belongs to the caller.
func (p Payload) Value() (any, error) {
	if p.isText() {
		return value.Decode(p.raw)
	}
	return value.From(p.value)
}

// Shared is [Payload.Value] without the copy where the payload already is in
// the value model: the result may be shared and must not be changed.
func (p Payload) Shared() (any, error) {
	if !p.isText() && inModel(p.value) {
		return p.value, nil
	}
	return p.Value()
}

// Decode stores the value in what v points to (see [value.Into]).
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

// isText reports whether the JSON text is all there is.
func (p Payload) isText() bool { return p.raw != nil && p.value == nil }

// inModel tells whether v consists of value model types all the way down.
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

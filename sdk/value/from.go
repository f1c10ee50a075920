package value

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
)

// From converts any Go value to the value model. It copies every container, so that the
// result shares nothing mutable with v. Types outside of the model (structs, typed
// slices, ...) are converted as by encoding/json, including tags and marshalers, except
// that a whole float stays a float.
func From(v any) (any, error) { return from(v, 0) }

func from(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case string:
		return validText(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v has no JSON form", v)
		}
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case float32:
		return fromFloat32(v)
	case json.Number:
		return FromNumber(v)
	case json.RawMessage:
		return Decode(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			c, err := from(e, depth+1)
			if err != nil {
				return nil, within(fmt.Sprintf("[%d]", i), err)
			}
			out[i] = c
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			c, err := from(e, depth+1)
			if err != nil {
				return nil, within(k, err)
			}
			out[k] = c
		}
		return out, nil
	}
	return fromGo(reflect.ValueOf(v), depth)
}

// Clone copies every list and object of a value in the model.
func Clone(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = Clone(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = Clone(e)
		}
		return out
	}
	return v
}

// Fields converts the free fields of a log record or an error to the value model without
// losing any: an error becomes its text, and a value without a JSON form the reason.
// fields is not changed.
func Fields(fields map[string]any) map[string]any {
	inModel := make(map[string]any, len(fields))
	for key, field := range fields {
		if err, ok := field.(error); ok {
			field = err.Error()
		}
		v, err := From(field)
		if err != nil {
			v = err.Error()
		}
		inModel[key] = v
	}
	return inModel
}

package jsonschema

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"

	"github.com/the-edge-agent/tea/sdk/value"
)

// key is a text that two values share exactly where JSON Schema calls them
// equal: numbers by their value, objects without order.
func key(v any) string { return string(appendKey(nil, v)) }

func appendKey(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendFloatKey(dst, v)
	case json.Number:
		if v == "-0" {
			return append(dst, '0')
		}
		return append(dst, v...)
	case string:
		return value.AppendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for _, e := range v {
			dst = append(appendKey(dst, e), ',')
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for _, name := range sortedKeys(v) {
			dst = append(value.AppendString(dst, name), ':')
			dst = append(appendKey(dst, v[name]), ',')
		}
		return append(dst, '}')
	}
	return append(dst, '?')
}

func appendFloatKey(dst []byte, f float64) []byte {
	if f != math.Trunc(f) || math.IsInf(f, 0) {
		return strconv.AppendFloat(dst, f, 'g', -1, 64)
	}
	whole, _ := big.NewFloat(f).Int(nil)
	return whole.Append(dst, 10)
}

package jsonschema

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/exact"
)

// decimal gives a number as it is written: 0.01 means one hundredth here, and
// not the float64 next to it.
func decimal(v any) (*big.Rat, bool) {
	f, ok := v.(float64)
	if !ok {
		return exact.Rat(v)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	return new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
}

// toInt gives a whole number that fits an int.
func toInt(v any) (int, bool) {
	switch v := v.(type) {
	case int64:
		return int(v), int64(int(v)) == v
	case float64:
		return int(v), exact.IsInteger(v) && math.Abs(v) < 1<<52
	}
	return 0, false
}

// numberText writes a number as an author would.
func numberText(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case json.Number:
		return string(v)
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if len(text) > 24 {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	return "?"
}

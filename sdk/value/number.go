package value

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// IsNumber reports whether v is a number of the model.
func IsNumber(v any) bool {
	switch v.(type) {
	case int64, float64, json.Number:
		return true
	}
	return false
}

// IsInteger reports whether v is a whole number, including 3.0.
func IsInteger(v any) bool {
	switch v := v.(type) {
	case int64, json.Number:
		return true
	case float64:
		return v == math.Trunc(v) && !math.IsInf(v, 0)
	}
	return false
}

// Integer converts a whole number to the form of integers, an int64 or a longer
// json.Number; ok is false for all other values.
func Integer(v any) (i any, ok bool) {
	f, isFloat := v.(float64)
	switch {
	case !isFloat:
		return v, IsInteger(v)
	case !IsInteger(f):
		return nil, false
	case f >= math.MinInt64 && f < math.MaxInt64:
		return int64(f), true
	}
	whole, _ := big.NewFloat(f).Int(nil)
	return FromBig(whole), true
}

// Int converts a whole number to an int; ok is false if v is not one or is out of range.
func Int(v any) (i int, ok bool) {
	whole, _ := Integer(v)
	n, ok := whole.(int64)
	return int(n), ok && int64(int(n)) == n
}

// Float converts a number to the nearest float64; ok is false if v is not a
// number or is out of range.
func Float(v any) (f float64, ok bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}

// Big converts a number that is written as an integer; ok is false for floats, including
// 3.0, and for all other values.
func Big(v any) (i *big.Int, ok bool) {
	switch v := v.(type) {
	case int64:
		return big.NewInt(v), true
	case json.Number:
		return new(big.Int).SetString(string(v), 10)
	}
	return nil, false
}

// FromBig converts an integer of any size.
func FromBig(i *big.Int) any {
	if i.IsInt64() {
		return i.Int64()
	}
	return json.Number(i.String())
}

// Compare orders two numbers by value, without rounding, whatever their Go
// types; ok is false if one of them is not a number. NaN is not a number.
func Compare(a, b any) (order int, ok bool) {
	switch x := a.(type) {
	case int64:
		switch y := b.(type) {
		case int64:
			return cmp.Compare(x, y), true
		case float64:
			return compareFloat(x, y), y == y
		}
	case float64:
		switch y := b.(type) {
		case float64:
			return cmp.Compare(x, y), x == x && y == y
		case int64:
			return -compareFloat(y, x), x == x
		}
	}
	x, ok := bigFloat(a)
	if !ok {
		return 0, false
	}
	y, ok := bigFloat(b)
	if !ok {
		return 0, false
	}
	return x.Cmp(y), true
}

// compareFloat orders an integer and a float that is not NaN.
func compareFloat(i int64, f float64) int {
	switch {
	case f >= math.MaxInt64: // the constant rounds to 2^63
		return -1
	case f < math.MinInt64:
		return 1
	}
	whole := math.Trunc(f)
	if order := cmp.Compare(i, int64(whole)); order != 0 {
		return order
	}
	return cmp.Compare(whole, f)
}

// bigFloat returns the exact value of a number, including infinities.
func bigFloat(v any) (*big.Float, bool) {
	if f, isFloat := v.(float64); isFloat {
		if f != f {
			return nil, false
		}
		return big.NewFloat(f), true
	}
	i, ok := Big(v)
	if !ok {
		return nil, false
	}
	return new(big.Float).SetInt(i), true
}

// Decimal returns a number exactly as it is written: 0.01 is one hundredth, not the
// nearest float64; ok is false for all other values and if v is not finite.
func Decimal(v any) (r *big.Rat, ok bool) {
	f, isFloat := v.(float64)
	if !isFloat {
		i, ok := Big(v)
		if !ok {
			return nil, false
		}
		return new(big.Rat).SetInt(i), true
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	return new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
}

// FormatNumber formats a number as a person would write it.
func FormatNumber(v any) string {
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

// Key returns a text that is the same for two values exactly if [Equal] is true for them:
// numbers by value, objects without order.
func Key(v any) string { return string(appendKey(nil, v)) }

func appendKey(dst []byte, v any) []byte {
	if whole, ok := Integer(v); ok {
		v = whole
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	case json.Number:
		if v == "-0" {
			return append(dst, '0')
		}
		return append(dst, v...)
	case string:
		return AppendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for _, e := range v {
			dst = append(appendKey(dst, e), ',')
		}
		return append(dst, ']')
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		dst = append(dst, '{')
		for _, name := range names {
			dst = append(AppendString(dst, name), ':')
			dst = append(appendKey(dst, v[name]), ',')
		}
		return append(dst, '}')
	}
	return fmt.Appendf(dst, "%T %v", v, v)
}

// Whole converts numbers without a fraction, such as 7.0, to integers, if they have at most
// 53 bits. Use it for values from a program whose JSON has only one type of number. Lists
// and objects are changed in place.
func Whole(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = Whole(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = Whole(v[key])
		}
	}
	return v
}

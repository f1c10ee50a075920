// Package exact compares the numbers of the value model (package sdk/value)
// by what they stand for, whatever their Go types: an int64, a float64 and a
// long integer as json.Number. Start with [Compare].
package exact

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
)

// IsNumber tells whether v is a number of the value model.
func IsNumber(v any) bool {
	switch v.(type) {
	case int64, float64, json.Number:
		return true
	}
	return false
}

// IsInteger tells whether v is a whole number, 3.0 included.
func IsInteger(v any) bool {
	switch v := v.(type) {
	case int64, json.Number:
		return true
	case float64:
		return v == math.Trunc(v) && !math.IsInf(v, 0)
	}
	return false
}

// Int gives a number that is written as an integer; ok is false for floats
// and for what is no number.
func Int(v any) (i *big.Int, ok bool) {
	switch v := v.(type) {
	case int64:
		return big.NewInt(v), true
	case json.Number:
		return new(big.Int).SetString(string(v), 10)
	}
	return nil, false
}

// Rat gives a number without rounding; ok is false for what is no number.
func Rat(v any) (r *big.Rat, ok bool) {
	if f, isFloat := v.(float64); isFloat {
		r = new(big.Rat).SetFloat64(f)
		return r, r != nil
	}
	i, ok := Int(v)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetInt(i), true
}

// Compare orders two numbers; ok is false where one of them is none.
func Compare(a, b any) (order int, ok bool) {
	x, isInt := a.(int64)
	y, alsoInt := b.(int64)
	if isInt && alsoInt {
		return cmp.Compare(x, y), true
	}
	p, ok := Rat(a)
	if !ok {
		return 0, false
	}
	q, ok := Rat(b)
	if !ok {
		return 0, false
	}
	return p.Cmp(q), true
}

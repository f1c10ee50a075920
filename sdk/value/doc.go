// Package value represents JSON values as plain Go values without losing integers.
//
// A value is one of
//
//	nil, bool, int64, float64, string, json.Number, []any, map[string]any
//
// An integer that fits 64 bits is an int64; a longer one stays a json.Number
// with all its digits; a number written with a fraction or an exponent is a
// float64. The encoder writes whole float64 values as "3.0", so that a value
// has the same type after a round trip.
//
// Start with [Decode] and [Append]; [From] turns any Go value into this form.
// Values that were passed on are shared and must not be changed: use [Clone]
// for a copy.
package value

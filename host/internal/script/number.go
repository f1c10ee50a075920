package script

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// maxExact is the bound up to which a float64 represents every integer.
const maxExact = 1 << 53

// digits has the original integers beyond 2^53, which a run represents as rounded
// floats. A number is identified by the pointer in its interface value, which
// moves with it through registers, tables and calls. A computed number has a
// different pointer, so that 2^53 is not confused with 2^53 + 1 of the state. The
// keys keep the memory alive.
type digits map[unsafe.Pointer]any // int64 or json.Number

// box returns the pointer in the interface value of a number.
func box(v *lua.LValue) unsafe.Pointer {
	return (*[2]unsafe.Pointer)(unsafe.Pointer(v))[1] //nolint:gosec // reads the data word of an interface, which is two words in every version of Go
}

func (r *run) importBig(f float64, exact any) lua.LValue {
	var v lua.LValue = lua.LNumber(f)
	if r.digits == nil {
		r.digits = digits{}
	}
	r.digits[box(&v)] = exact
	return v
}

func (r *run) importInt(i int64) lua.LValue {
	if i > -maxExact && i < maxExact {
		return lua.LNumber(i)
	}
	return r.importBig(float64(i), i)
}

func (r *run) importNumber(n json.Number) lua.LValue {
	// With a range error, f is the infinity to which the number rounds.
	f, _ := strconv.ParseFloat(string(n), 64)
	return r.importBig(f, n)
}

// exact returns the original integer of a number; false for a computed number.
func (r *run) exact(v lua.LValue) (any, bool) {
	if _, ok := v.(lua.LNumber); !ok || len(r.digits) == 0 {
		return nil, false
	}
	exact, ok := r.digits[box(&v)]
	return exact, ok
}

// exportNumber returns an int64 for a whole number that fits, else a float64;
// false for numbers that JSON cannot represent.
func (r *run) exportNumber(v lua.LValue) (any, bool) {
	if exact, ok := r.exact(v); ok {
		return exact, true
	}
	f := float64(v.(lua.LNumber))
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, false
	case f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64:
		return int64(f), true
	}
	return f, true
}

// space is the white space that Lua ignores around a number.
const space = " \t\n\v\f\r"

// parseNumber converts text to a number as Lua 5.1 does: 010 is 10, and 0b11 or
// 1_000 is not a number. It refuses inf and nan, which Lua leaves to the C
// library.
func parseNumber(s string) (lua.LNumber, bool) {
	s = strings.Trim(s, space)
	digits := strings.TrimLeft(s, "+-")
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		if strings.ContainsRune(digits, '_') {
			return 0, false
		}
		if !strings.ContainsAny(digits, "pP") {
			s += "p0" // Go requires an exponent
		}
	} else if strings.Trim(digits, "+-.0123456789eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return lua.LNumber(f), true
}

// number returns the number that Lua uses for an operand: a number, or text that is a
// number.
func number(v lua.LValue) (lua.LNumber, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return v, true
	case lua.LString:
		return parseNumber(string(v))
	}
	return 0, false
}

// text returns a string or number as text, as Lua does; false for other values.
func (r *run) text(v lua.LValue) (string, bool) {
	switch typed := v.(type) {
	case lua.LString:
		return string(typed), true
	case lua.LNumber:
		return r.numberText(v), true
	}
	return "", false
}

func (r *run) numberText(v lua.LValue) string {
	if exact, ok := r.exact(v); ok {
		if i, ok := exact.(int64); ok {
			return strconv.FormatInt(i, 10)
		}
		return string(exact.(json.Number))
	}
	f := float64(v.(lua.LNumber))
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return strconv.FormatInt(int64(f), 10)
	}
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', 14, 64)
}

package script

import (
	"encoding/json"
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// maxExact is the largest integer up to which every integer is a float64.
const maxExact = 1 << 53

// digits remembers the integers beyond 2^53 that came into a run as rounded
// floats, by value and by the place in a table. A float that two of them
// round to is known by its place only, until a script moves it.
type digits struct {
	values map[float64]any // int64 or json.Number; nil where two share the float
	places map[place]bigInteger
}

// place is a field of a table, or an element where name is empty.
type place struct {
	table *lua.LTable
	name  string
	index int
}

type bigInteger struct {
	rounded float64
	exact   any
}

func (r *run) importBig(f float64, exact any) lua.LValue {
	if r.digits.values == nil {
		r.digits.values = map[float64]any{}
	}
	if other, known := r.digits.values[f]; known && other != exact {
		exact = nil
	}
	r.digits.values[f] = exact
	return lua.LNumber(f)
}

// notePlace remembers where an integer beyond 2^53 was put.
func (r *run) notePlace(at place, v lua.LValue, from any) {
	f, ok := v.(lua.LNumber)
	if !ok || f > -maxExact && f < maxExact {
		return
	}
	switch from.(type) {
	case int64, json.Number:
		if r.digits.places == nil {
			r.digits.places = map[place]bigInteger{}
		}
		r.digits.places[at] = bigInteger{float64(f), from}
	}
}

// exactAt gives the integer that was put at a place and is still there.
func (r *run) exactAt(at place, v lua.LValue) (any, bool) {
	f, ok := v.(lua.LNumber)
	if !ok || len(r.digits.places) == 0 {
		return nil, false
	}
	big, ok := r.digits.places[at]
	return big.exact, ok && big.rounded == float64(f)
}

func (r *run) importInt(i int64) lua.LValue {
	if i > -maxExact && i < maxExact {
		return lua.LNumber(i)
	}
	return r.importBig(float64(i), i)
}

func (r *run) importNumber(n json.Number) lua.LValue {
	// A range error still gives the infinity that such a number rounds to.
	f, _ := strconv.ParseFloat(string(n), 64)
	return r.importBig(f, n)
}

// exact gives the integer that a number came from.
func (r *run) exact(v lua.LValue) (any, bool) {
	f, ok := v.(lua.LNumber)
	if !ok || len(r.digits.values) == 0 {
		return nil, false
	}
	exact := r.digits.values[float64(f)]
	return exact, exact != nil
}

// exportNumber gives an int64 for a whole number that fits, else a float64;
// false for what JSON cannot hold.
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

// text is a string or number as the text Lua gives it; false for others.
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

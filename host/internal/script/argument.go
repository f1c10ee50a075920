package script

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"

	tea "github.com/the-edge-agent/tea/sdk"
)

// mostCount is the largest count or index that both an int and a float64
// represent.
const mostCount = min(maxExact, math.MaxInt)

// checkNumber returns argument n, which must be a number or text that is a number.
func checkNumber(L *lua.LState, n int) lua.LNumber {
	v, ok := number(L.Get(n))
	if !ok {
		L.TypeError(n, lua.LTNumber)
	}
	return v
}

// checkInt returns argument n as an integer, clamped to mostCount.
func checkInt(L *lua.LState, n int) int {
	f := float64(checkNumber(L, n))
	switch {
	case math.IsNaN(f):
		L.ArgError(n, "number has no integer representation")
	case f > mostCount:
		return mostCount
	case f < -mostCount:
		return -mostCount
	}
	return int(f)
}

// optInt is checkInt with a default for nil.
func optInt(L *lua.LState, n, otherwise int) int {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return checkInt(L, n)
}

// checkText returns argument n as a string; numbers keep their digits.
func checkText(L *lua.LState, n int) string {
	s, ok := runOf(L).text(L.Get(n))
	if !ok {
		L.TypeError(n, lua.LTString)
	}
	return s
}

// arguments returns the arguments from the n-th on.
func arguments(L *lua.LState, n int) []lua.LValue {
	var out []lua.LValue
	for i := n; i <= L.GetTop(); i++ {
		out = append(out, L.Get(i))
	}
	return out
}

// push pushes the results of a library function and returns their number.
func push(L *lua.LState, values ...lua.LValue) int {
	for _, v := range values {
		L.Push(v)
	}
	return len(values)
}

// checkSize raises an error if a string of n bytes would be too long.
func (r *run) checkSize(L *lua.LState, n int) {
	if n > r.limit {
		r.raiseLimit(L, "string too long: at most %d bytes are allowed", r.limit)
	}
}

// limitError is a limit of size that a script has reached.
type limitError string

func (e limitError) Error() string { return string(e) }

// raiseLimit raises a [limitError], which a script sees as resource_exhausted.
func (r *run) raiseLimit(L *lua.LState, format string, args ...any) {
	L.Error(r.errorTable(tea.Errorf(tea.ResourceExhausted, "%w", limitError(fmt.Sprintf(format, args...)))), 1)
}

package script

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// maxUnpack bounds the results of one call of unpack.
const maxUnpack = 8000

func baseFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"assert":       baseAssert,
		"error":        baseError,
		"getmetatable": baseGetMetatable,
		"ipairs":       baseIpairs,
		"next":         baseNext,
		"pairs":        basePairs,
		"pcall":        basePcall,
		"print":        basePrint,
		"rawequal":     baseRawEqual,
		"rawget":       baseRawGet,
		"rawset":       baseRawSet,
		"require":      baseRequire,
		"select":       baseSelect,
		"setmetatable": baseSetMetatable,
		"tonumber":     baseToNumber,
		"tostring":     baseToString,
		"type":         baseType,
		"unpack":       baseUnpack,
		"xpcall":       baseXpcall,
	}
}

func baseAssert(L *lua.LState) int {
	if lua.LVAsBool(L.CheckAny(1)) {
		return L.GetTop()
	}
	if L.GetTop() < 2 {
		L.RaiseError("assertion failed!")
	}
	L.Error(L.Get(2), 0)
	return 0
}

// baseError raises its argument. It adjusts the level, because gopher-lua counts
// this function as one, except for level 1.
func baseError(L *lua.LState) int {
	level := optInt(L, 2, 1)
	if level > 1 {
		level++
	}
	L.Error(L.Get(1), level)
	return 0
}

func baseGetMetatable(L *lua.LState) int {
	mt := L.GetMetatable(L.CheckAny(1))
	if t, ok := mt.(*lua.LTable); ok && runOf(L).m.isMark(t) {
		mt = lua.LNil
	}
	return push(L, mt)
}

// isMark reports whether a metatable only marks the origin of a table.
func (m *machine) isMark(t *lua.LTable) bool {
	return t == m.listMeta || t == m.objectMeta || t == m.lazyMeta
}

func baseSetMetatable(L *lua.LState) int {
	r := runOf(L)
	t := r.writable(L, L.CheckTable(1))
	if t != r.state {
		r.whole(L, t)
	}
	mt := L.Get(2)
	if mt != lua.LNil && mt.Type() != lua.LTTable {
		L.ArgError(2, "nil or table expected")
	}
	if old, ok := t.Metatable.(*lua.LTable); ok && (t == r.state || !r.m.isMark(old)) && old.RawGetString("__metatable") != lua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	t.Metatable = mt
	return push(L, t)
}

func baseIpairs(L *lua.LState) int {
	t := L.CheckTable(1)
	return push(L, runOf(L).m.ipairsStep, t, lua.LNumber(0))
}

func ipairsStep(L *lua.LState) int {
	i := L.CheckInt(2) + 1
	v := L.CheckTable(1).RawGetInt(i)
	if v == lua.LNil {
		return push(L, lua.LNil)
	}
	return push(L, lua.LNumber(i), v)
}

func basePairs(L *lua.LState) int {
	r := runOf(L)
	return push(L, r.m.next, r.whole(L, L.CheckTable(1)), lua.LNil)
}

func baseNext(L *lua.LState) int {
	t := runOf(L).whole(L, L.CheckTable(1))
	key, value := t.Next(L.Get(2))
	L.Push(key)
	if key == lua.LNil {
		return 1
	}
	L.Push(value)
	return 2
}

func basePcall(L *lua.LState) int {
	r := runOf(L)
	results, failure := r.protect(L, r.callable(L, 1), arguments(L, 2))
	return pushOutcome(L, results, failure)
}

// pushOutcome pushes true and the results, or false and the failure.
func pushOutcome(L *lua.LState, results []lua.LValue, failure lua.LValue) int {
	if failure != nil {
		return push(L, lua.LFalse, failure)
	}
	L.Push(lua.LTrue)
	return 1 + push(L, results...)
}

func baseXpcall(L *lua.LState) int {
	r := runOf(L)
	handler := L.CheckFunction(2)
	results, failure := r.protect(L, r.callable(L, 1), arguments(L, 3))
	if failure == nil {
		return pushOutcome(L, results, nil)
	}
	L.Push(lua.LFalse)
	results, failure = r.protect(L, handler, []lua.LValue{failure})
	if failure != nil {
		L.Push(failure)
		return 2
	}
	return 1 + push(L, results...)
}

// callable returns argument n as a function. A value that cannot be called
// becomes a function that fails, for pcall to report.
func (r *run) callable(L *lua.LState, n int) *lua.LFunction {
	v := L.CheckAny(n)
	if fn, ok := v.(*lua.LFunction); ok {
		return fn
	}
	return L.NewFunction(func(L *lua.LState) int {
		args := arguments(L, 1)
		base := L.GetTop()
		if L.GetMetaField(v, "__call").Type() != lua.LTFunction {
			L.RaiseError("attempt to call a %s value", v.Type())
		}
		L.Push(v)
		n := push(L, args...)
		L.Call(n, lua.MultRet)
		return L.GetTop() - base
	})
}

func basePrint(L *lua.LState) int {
	r := runOf(L)
	parts := make([]string, L.GetTop())
	size := 0
	for i := range parts {
		parts[i] = r.display(L, L.Get(i+1))
		size += len(parts[i]) + 1
		r.checkSize(L, size)
	}
	if r.env.Log != nil {
		r.env.Log(slog.LevelInfo, strings.Join(parts, "\t"), nil)
	}
	return 0
}

// display is tostring.
func (r *run) display(L *lua.LState, v lua.LValue) string {
	if s, ok := r.text(v); ok {
		return s
	}
	if fn := L.GetMetaField(v, "__tostring"); fn.Type() == lua.LTFunction {
		s, ok := r.text(r.callback(L, fn, v))
		if !ok {
			L.RaiseError("'__tostring' must return a string")
		}
		return s
	}
	return v.String()
}

func baseToString(L *lua.LState) int { return push(L, lua.LString(runOf(L).display(L, L.CheckAny(1)))) }

func baseRawEqual(L *lua.LState) int { return push(L, lua.LBool(L.CheckAny(1) == L.CheckAny(2))) }

func baseRawGet(L *lua.LState) int {
	return push(L, runOf(L).whole(L, L.CheckTable(1)).RawGet(L.CheckAny(2)))
}

func baseRawSet(L *lua.LState) int {
	r := runOf(L)
	t := r.writable(L, L.CheckTable(1))
	r.whole(L, t)
	L.RawSet(t, L.CheckAny(2), L.CheckAny(3))
	return push(L, t)
}

func baseSelect(L *lua.LState) int {
	if s, ok := L.Get(1).(lua.LString); ok && s == "#" {
		return push(L, lua.LNumber(L.GetTop()-1))
	}
	n, count := checkInt(L, 1), L.GetTop()-1
	switch {
	case n < 0:
		n += count
		if n < 0 {
			L.ArgError(1, "index out of range")
		}
		return count - n
	case n == 0:
		L.ArgError(1, "index out of range")
	case n > count:
		return 0
	}
	return count - n + 1
}

func baseToNumber(L *lua.LState) int {
	v := L.CheckAny(1)
	base := optInt(L, 2, 10)
	if base < 2 || base > 36 {
		L.ArgError(2, "base out of range")
	}
	if v.Type() == lua.LTNumber && base == 10 {
		return push(L, v)
	}
	r := runOf(L)
	if base != 10 {
		return push(L, parseInteger(checkText(L, 1), base))
	}
	s, ok := r.text(v)
	if !ok {
		return push(L, lua.LNil)
	}
	parsed, _ := detached(r, L, len(s), func() (lua.LValue, error) {
		if n, ok := parseNumber(s); ok {
			return n, nil
		}
		return lua.LNil, nil
	})
	return push(L, parsed)
}

// parseInteger converts text in a base other than 10, as strtoul does in C. It returns
// nil for other text.
func parseInteger(s string, base int) lua.LValue {
	s = strings.ToLower(strings.Trim(s, space))
	digits, isNegative := strings.CutPrefix(s, "-")
	if !isNegative {
		digits = strings.TrimPrefix(s, "+")
	}
	if base == 16 {
		digits = strings.TrimPrefix(digits, "0x")
	}
	u, err := strconv.ParseUint(digits, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return lua.LNil
	}
	if isNegative && err == nil {
		u = -u
	}
	return lua.LNumber(u)
}

// loopBound returns a bound of a loop, and converts text that is a number.
func loopBound(L *lua.LState) int {
	v := L.Get(1)
	if n, ok := number(v); ok && v.Type() == lua.LTString {
		v = n
	}
	return push(L, v)
}

func baseType(L *lua.LState) int { return push(L, lua.LString(L.CheckAny(1).Type().String())) }

func baseUnpack(L *lua.LState) int {
	t := runOf(L).whole(L, L.CheckTable(1))
	first := optInt(L, 2, 1)
	last := optInt(L, 3, t.Len())
	if last < first {
		return 0
	}
	if last-first >= maxUnpack {
		L.RaiseError("too many results to unpack")
	}
	for i := first; i <= last; i++ {
		L.Push(t.RawGet(lua.LNumber(i)))
	}
	return last - first + 1
}

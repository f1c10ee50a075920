package script

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

func stringFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"byte":    stringByte,
		"char":    stringChar,
		"find":    stringFind,
		"format":  stringFormat,
		"gfind":   stringGmatch,
		"gmatch":  stringGmatch,
		"gsub":    stringGsub,
		"len":     stringLen,
		"lower":   stringLower,
		"match":   stringMatch,
		"rep":     stringRep,
		"reverse": stringReverse,
		"sub":     stringSub,
		"upper":   stringUpper,
	}
}

// arithmetic returns the metamethods of strings, for operators on text that is a
// number, which gopher-lua would convert differently.
func arithmetic() map[string]lua.LGFunction {
	functions := map[string]lua.LGFunction{"__unm": func(L *lua.LState) int {
		n, ok := number(L.Get(1))
		if !ok {
			L.RaiseError("cannot perform unm operation on %s", L.Get(1).Type())
		}
		return push(L, -n)
	}}
	for event, compute := range map[string]func(a, b float64) float64{
		"__add": func(a, b float64) float64 { return a + b },
		"__sub": func(a, b float64) float64 { return a - b },
		"__mul": func(a, b float64) float64 { return a * b },
		"__div": func(a, b float64) float64 { return a / b },
		"__mod": modulo,
		"__pow": math.Pow,
	} {
		functions[event] = func(L *lua.LState) int { return operate(L, event, compute) }
	}
	return functions
}

// operate applies an operator to operands, at least one of which is a string.
func operate(L *lua.LState, event string, compute func(a, b float64) float64) int {
	left, right := L.Get(1), L.Get(2)
	a, okA := number(left)
	b, okB := number(right)
	if okA && okB {
		return push(L, lua.LNumber(compute(float64(a), float64(b))))
	}
	for _, v := range []lua.LValue{left, right} {
		if _, isText := v.(lua.LString); isText {
			continue
		}
		if fn := L.GetMetaField(v, event); fn.Type() == lua.LTFunction {
			return push(L, runOf(L).callback(L, fn, left, right))
		}
	}
	L.RaiseError("cannot perform %s operation between %s and %s", event[2:], left.Type(), right.Type())
	return 0
}

// modulo returns the remainder with the sign of b.
func modulo(a, b float64) float64 {
	m := math.Mod(a, b)
	if b > 0 && m < 0 || b < 0 && m > 0 {
		m += b
	}
	return m
}

// bounds returns arguments n and n+1 as a range of a string of the given
// length.
func bounds(L *lua.LState, n, length, first, last int) (start, end int) {
	start, end = optInt(L, n, first), optInt(L, n+1, last)
	if start < 0 {
		start += length + 1
	}
	if end < 0 {
		end += length + 1
	}
	start, end = max(start, 1), min(end, length)
	if start > end {
		return 0, 0
	}
	return start - 1, end
}

func stringSub(L *lua.LState) int {
	s := checkText(L, 1)
	start, end := bounds(L, 2, len(s), 1, -1)
	return push(L, lua.LString(s[start:end]))
}

func stringByte(L *lua.LState) int {
	s := checkText(L, 1)
	first := optInt(L, 2, 1)
	start, end := bounds(L, 2, len(s), 1, first)
	if end-start > maxUnpack {
		L.RaiseError("string slice too long")
	}
	for i := start; i < end; i++ {
		L.Push(lua.LNumber(s[i]))
	}
	return end - start
}

func stringChar(L *lua.LState) int {
	out := make([]byte, L.GetTop())
	for i := range out {
		c := checkInt(L, i+1)
		if c < 0 || c > 255 {
			L.ArgError(i+1, "value out of range")
		}
		out[i] = byte(c)
	}
	return push(L, lua.LString(out))
}

func stringLen(L *lua.LState) int { return push(L, lua.LNumber(len(checkText(L, 1)))) }

func stringLower(L *lua.LState) int { return pushCase(L, unicode.ToLower) }
func stringUpper(L *lua.LState) int { return pushCase(L, unicode.ToUpper) }

// pushCase changes the case of letters, which can change their length. Bytes that
// are not UTF-8 remain unchanged.
func pushCase(L *lua.LState, change func(rune) rune) int {
	r := runOf(L)
	s := checkText(L, 1)
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		r.step(L)
		letter, size := utf8.DecodeRuneInString(s[i:])
		if letter == utf8.RuneError && size == 1 {
			out.WriteByte(s[i])
		} else {
			out.WriteRune(change(letter))
		}
		i += size
	}
	r.checkSize(L, out.Len())
	return push(L, lua.LString(out.String()))
}

func stringRep(L *lua.LState) int {
	s, n := checkText(L, 1), checkInt(L, 2)
	if n <= 0 || s == "" {
		return push(L, lua.LString(""))
	}
	r := runOf(L)
	if n > r.limit/len(s) {
		r.checkSize(L, r.limit+1)
	}
	return push(L, lua.LString(strings.Repeat(s, n)))
}

func stringReverse(L *lua.LState) int {
	s := checkText(L, 1)
	out := make([]byte, len(s))
	for i := range len(s) {
		out[len(s)-1-i] = s[i]
	}
	return push(L, lua.LString(out))
}

// concatenate is the operator `..` on two or more operands.
func concatenate(L *lua.LState) int {
	r := runOf(L)
	n := L.GetTop()
	parts := make([]string, n)
	size := 0
	for i := range parts {
		s, ok := r.text(L.Get(i + 1))
		if !ok {
			return push(L, r.concatPairs(L, n))
		}
		parts[i] = s
		size += len(s)
	}
	r.checkSize(L, size)
	return push(L, lua.LString(strings.Join(parts, "")))
}

// concatPairs joins from the right if an operand has a metamethod.
func (r *run) concatPairs(L *lua.LState, n int) lua.LValue {
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		a, okA := r.text(left)
		b, okB := r.text(right)
		if okA && okB {
			r.checkSize(L, len(a)+len(b))
			right = lua.LString(a + b)
			continue
		}
		fn := L.GetMetaField(left, "__concat")
		if fn.Type() != lua.LTFunction {
			fn = L.GetMetaField(right, "__concat")
		}
		if fn.Type() != lua.LTFunction {
			culprit := left
			if okA {
				culprit = right
			}
			L.RaiseError("attempt to concatenate a %s value", culprit.Type())
		}
		right = r.callback(L, fn, left, right)
	}
	return right
}

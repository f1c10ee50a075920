package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// formatSpec is one %... of string.format.
type formatSpec struct {
	flags string // "%" and flags, width and precision in Go's syntax
	verb  byte
}

func stringFormat(L *lua.LState) int {
	r := runOf(L)
	format := checkText(L, 1)
	var out strings.Builder
	arg := 1
	for i := 0; i < len(format); {
		r.step(L)
		next := strings.IndexByte(format[i:], '%')
		if next < 0 {
			next = len(format) - i
		}
		r.checkSize(L, out.Len()+next)
		out.WriteString(format[i : i+next])
		if i += next; i >= len(format) {
			break
		}
		if strings.HasPrefix(format[i:], "%%") {
			out.WriteByte('%')
			i += 2
			continue
		}
		spec, length := parseSpec(L, format[i:])
		i += length
		arg++
		if arg > L.GetTop() {
			L.ArgError(arg, "no value")
		}
		text := r.formatOne(L, spec, arg)
		r.checkSize(L, out.Len()+len(text))
		out.WriteString(text)
	}
	return push(L, lua.LString(out.String()))
}

// parseSpec parses a specification: flags, at most two digits each of width and
// precision, and a letter.
func parseSpec(L *lua.LState, s string) (formatSpec, int) {
	i := 1
	for i < len(s) && strings.IndexByte("-+ #0", s[i]) >= 0 {
		i++
	}
	if i > 6 {
		L.RaiseError("invalid format (repeated flags)")
	}
	digits := func() {
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if i-start > 2 {
			L.RaiseError("invalid format (width or precision too long)")
		}
	}
	digits()
	if i < len(s) && s[i] == '.' {
		i++
		digits()
	}
	if i >= len(s) {
		L.RaiseError("invalid format (ends in the middle of '%s')", s)
	}
	return formatSpec{flags: s[:i], verb: s[i]}, i + 1
}

func (r *run) formatOne(L *lua.LState, spec formatSpec, arg int) string {
	switch spec.verb {
	case 'd', 'i', 'u':
		return formatInteger(spec.flags, 'd', r.integer(L, arg))
	case 'o', 'x', 'X':
		return formatInteger(spec.flags, spec.verb, r.integer(L, arg))
	case 'c':
		return string([]byte{byte(checkInt(L, arg))})
	case 'e', 'E', 'f', 'F', 'g', 'G':
		return formatFloat(spec, float64(checkNumber(L, arg)))
	case 'q':
		return r.quoted(L, checkText(L, arg))
	case 's':
		if spec.flags == "%" {
			return r.display(L, L.CheckAny(arg))
		}
		return fmt.Sprintf(spec.flags+"s", byteText(r.display(L, L.CheckAny(arg))))
	}
	L.RaiseError("invalid option '%%%s' to 'format'", strconv.QuoteRune(rune(spec.verb)))
	return ""
}

// byteText makes Sprintf count width and precision in bytes, as Lua does.
type byteText string

// Format writes the text with the width and precision of f.
func (t byteText) Format(f fmt.State, _ rune) {
	s := string(t)
	if precision, ok := f.Precision(); ok && precision < len(s) {
		s = s[:precision]
	}
	width, _ := f.Width()
	padding := strings.Repeat(" ", max(width-len(s), 0))
	if f.Flag('-') {
		s += padding
	} else {
		s = padding + s
	}
	_, _ = f.Write([]byte(s))
}

// integer returns an argument as an integer with all its known digits.
func (r *run) integer(L *lua.LState, arg int) int64 {
	if exact, ok := r.exact(L.Get(arg)); ok {
		if i, ok := exact.(int64); ok {
			return i
		}
	}
	f := float64(checkNumber(L, arg))
	switch {
	case math.IsNaN(f):
		L.ArgError(arg, "number has no integer representation")
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

func formatInteger(flags string, verb byte, i int64) string {
	if verb != 'd' && i < 0 {
		return fmt.Sprintf(flags+string(verb), uint64(i))
	}
	return fmt.Sprintf(flags+string(verb), i)
}

func formatFloat(spec formatSpec, f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		text := "inf"
		if math.IsNaN(f) {
			text = "nan"
		} else if f < 0 {
			text = "-inf"
		}
		return fmt.Sprintf("%"+strings.TrimLeft(strings.SplitN(spec.flags, ".", 2)[0], "%0+ #")+"s", text)
	}
	flags := spec.flags
	if !strings.Contains(flags, ".") {
		flags += ".6" // the default of C
	}
	return fmt.Sprintf(flags+string(spec.verb), f)
}

// quoted quotes a string for Lua.
func (r *run) quoted(L *lua.LState, s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(s) {
		r.step(L)
		r.checkSize(L, out.Len())
		switch c := s[i]; c {
		case '"', '\\', '\n':
			out.WriteByte('\\')
			out.WriteByte(c)
		case '\r':
			out.WriteString("\\r")
		case 0:
			out.WriteString("\\000")
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

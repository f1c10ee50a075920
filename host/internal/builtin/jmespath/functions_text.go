package jmespath

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/the-edge-agent/tea/sdk/value"
)

// maxPadding bounds the length of a padded string.
const maxPadding = 1 << 20

func typeOf(_ *run, args []any) any {
	if value.IsNumber(args[0]) {
		return "number"
	}
	return value.TypeName(args[0])
}

func toString(r *run, args []any) any {
	if s, ok := args[0].(string); ok {
		return s
	}
	r.measure(args[0])
	return string(must(value.Encode(args[0])))
}

func join(r *run, args []any) any {
	list := args[1].([]any)
	parts := make([]string, len(list))
	total := 0
	for i, e := range list {
		parts[i] = e.(string)
		total += len(parts[i]) + len(args[0].(string))
	}
	r.spend(total / 16)
	return strings.Join(parts, args[0].(string))
}

// wholeArg returns an optional argument that must be an integer.
func wholeArg(args []any, i, absent int) int {
	if i >= len(args) {
		return absent
	}
	n, ok := value.Int(args[i])
	if !ok || n > math.MaxInt32 || n < math.MinInt32 {
		panic(failf("argument %d must be an integer", i+1))
	}
	return n
}

// countArg is wholeArg for a count.
func countArg(args []any, i, absent int) int {
	n := wholeArg(args, i, absent)
	if n < 0 && i < len(args) {
		panic(failf("argument %d must not be negative", i+1))
	}
	return n
}

// find returns the position, in characters, of a part between start and end.
func find(args []any, search func(s, part string) int) any {
	subject, part := []rune(args[0].(string)), args[1].(string)
	start := wholeArg(args, 2, 0)
	end := wholeArg(args, 3, len(subject))
	place := func(i int) int {
		if i < 0 {
			i += len(subject)
		}
		return min(max(i, 0), len(subject))
	}
	start, end = place(start), place(end)
	if part == "" || start >= end {
		return nil
	}
	window := string(subject[start:end])
	at := search(window, part)
	if at < 0 {
		return nil
	}
	return int64(start + len([]rune(window[:at])))
}

func padding(r *run, args []any) string {
	width := countArg(args, 1, 0)
	pad := " "
	if len(args) > 2 {
		pad = args[2].(string)
	}
	if len([]rune(pad)) != 1 {
		panic(failf("argument 3 must be one character"))
	}
	missing := max(width-len([]rune(args[0].(string))), 0)
	if missing > maxPadding {
		panic(failf("the width is limited to %d", maxPadding))
	}
	r.spend(missing / 16)
	return strings.Repeat(pad, missing)
}

func replace(r *run, args []any) any {
	s, old, by := args[0].(string), args[1].(string), args[2].(string)
	times := countArg(args, 3, -1)
	r.spend((len(s) + strings.Count(s, old)*len(by)) / 16)
	return strings.Replace(s, old, by, times)
}

func split(r *run, args []any) any {
	s := args[0].(string)
	if s == "" {
		return []any{}
	}
	times := countArg(args, 2, -1)
	if times >= 0 {
		times++
	}
	r.spend(len(s))
	parts := []any{}
	for _, part := range strings.SplitN(s, args[1].(string), times) {
		parts = append(parts, part)
	}
	return parts
}

// trimmed removes the characters of the second argument, or white space.
func trimmed(args []any, cut func(s string, in func(rune) bool) string) string {
	in := unicode.IsSpace
	if len(args) > 1 && args[1].(string) != "" {
		set := []rune(args[1].(string))
		in = func(c rune) bool { return slices.Contains(set, c) }
	}
	return cut(args[0].(string), in)
}

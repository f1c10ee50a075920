package jmespath

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/the-edge-agent/tea/sdk/value"
)

// maxPadding bounds the length of a padded string.
const maxPadding = 1 << 20

func containsText(s string, part any) bool {
	p, ok := part.(string)
	return ok && strings.Contains(s, p)
}

func endsWith(_ *run, args []any) (any, error) {
	return strings.HasSuffix(args[0].(string), args[1].(string)), nil
}

func startsWith(_ *run, args []any) (any, error) {
	return strings.HasPrefix(args[0].(string), args[1].(string)), nil
}

func lower(_ *run, args []any) (any, error) { return strings.ToLower(args[0].(string)), nil }

func upper(_ *run, args []any) (any, error) { return strings.ToUpper(args[0].(string)), nil }

func typeOf(_ *run, args []any) (any, error) {
	if value.IsNumber(args[0]) {
		return "number", nil
	}
	return value.TypeName(args[0]), nil
}

func toString(r *run, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		return s, nil
	}
	if err := r.measure(args[0]); err != nil {
		return nil, err
	}
	raw, err := value.Encode(args[0])
	return string(raw), err
}

func join(r *run, args []any) (any, error) {
	list := args[1].([]any)
	parts := make([]string, len(list))
	total := 0
	for i, e := range list {
		parts[i] = e.(string)
		total += len(parts[i]) + len(args[0].(string))
	}
	if err := r.spend(total / 16); err != nil {
		return nil, err
	}
	return strings.Join(parts, args[0].(string)), nil
}

// wholeArg returns an optional argument that must be an integer.
func wholeArg(args []any, i, absent int) (int, error) {
	if i >= len(args) {
		return absent, nil
	}
	n, ok := value.Int(args[i])
	if !ok || n > math.MaxInt32 || n < math.MinInt32 {
		return 0, fmt.Errorf("argument %d must be an integer", i+1)
	}
	return n, nil
}

// countArg is wholeArg for a count.
func countArg(args []any, i, absent int) (int, error) {
	n, err := wholeArg(args, i, absent)
	if err == nil && n < 0 && i < len(args) {
		err = fmt.Errorf("argument %d must not be negative", i+1)
	}
	return n, err
}

func findFirst(_ *run, args []any) (any, error) { return find(args, strings.Index) }

func findLast(_ *run, args []any) (any, error) { return find(args, strings.LastIndex) }

// find returns the position, in characters, of a part between start and end.
func find(args []any, search func(s, part string) int) (any, error) {
	subject, part := []rune(args[0].(string)), args[1].(string)
	start, err := wholeArg(args, 2, 0)
	if err != nil {
		return nil, err
	}
	end, err := wholeArg(args, 3, len(subject))
	if err != nil {
		return nil, err
	}
	place := func(i int) int {
		if i < 0 {
			i += len(subject)
		}
		return min(max(i, 0), len(subject))
	}
	start, end = place(start), place(end)
	if part == "" || start >= end {
		return nil, nil
	}
	window := string(subject[start:end])
	at := search(window, part)
	if at < 0 {
		return nil, nil
	}
	return int64(start + len([]rune(window[:at]))), nil
}

func padLeft(r *run, args []any) (any, error) {
	padding, err := padding(r, args)
	return padding + args[0].(string), err
}

func padRight(r *run, args []any) (any, error) {
	padding, err := padding(r, args)
	return args[0].(string) + padding, err
}

func padding(r *run, args []any) (string, error) {
	width, err := countArg(args, 1, 0)
	if err != nil {
		return "", err
	}
	pad := " "
	if len(args) > 2 {
		pad = args[2].(string)
	}
	if len([]rune(pad)) != 1 {
		return "", fmt.Errorf("argument 3 must be one character")
	}
	missing := max(width-len([]rune(args[0].(string))), 0)
	if missing > maxPadding {
		return "", fmt.Errorf("the width is limited to %d", maxPadding)
	}
	return strings.Repeat(pad, missing), r.spend(missing / 16)
}

func replace(r *run, args []any) (any, error) {
	s, old, by := args[0].(string), args[1].(string), args[2].(string)
	times, err := countArg(args, 3, -1)
	if err != nil {
		return nil, err
	}
	if err := r.spend((len(s) + strings.Count(s, old)*len(by)) / 16); err != nil {
		return nil, err
	}
	return strings.Replace(s, old, by, times), nil
}

func split(r *run, args []any) (any, error) {
	s := args[0].(string)
	if s == "" {
		return []any{}, nil
	}
	times, err := countArg(args, 2, -1)
	if err != nil {
		return nil, err
	}
	if times >= 0 {
		times++
	}
	if err := r.spend(len(s)); err != nil {
		return nil, err
	}
	parts := []any{}
	for _, part := range strings.SplitN(s, args[1].(string), times) {
		parts = append(parts, part)
	}
	return parts, nil
}

func trim(_ *run, args []any) (any, error) {
	return trimmed(args, strings.TrimFunc), nil
}

func trimLeft(_ *run, args []any) (any, error) { return trimmed(args, strings.TrimLeftFunc), nil }

func trimRight(_ *run, args []any) (any, error) { return trimmed(args, strings.TrimRightFunc), nil }

// trimmed removes the characters of the second argument, or white space.
func trimmed(args []any, cut func(s string, in func(rune) bool) string) string {
	in := unicode.IsSpace
	if len(args) > 1 && args[1].(string) != "" {
		set := []rune(args[1].(string))
		in = func(c rune) bool { return slices.Contains(set, c) }
	}
	return cut(args[0].(string), in)
}

//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
)

// DuckDB looks at a time-out after some thousand values. What takes much more
// time than its arguments are long has to be cheap from the start, or no
// time-out holds.

// wildcards are the functions that compare a text with a pattern, and what
// stands for any text in it. Where several of them have to be tried against
// each other, the time grows with the power of their number.
var wildcards = map[string]byte{
	"~~": '%', "!~~": '%', "like_escape": '%', "not_like_escape": '%',
	"~~*": '%', "!~~*": '%', "ilike_escape": '%', "not_ilike_escape": '%',
	"~~~": '*',
}

// searches are the functions that look for an expression many times.
var searches = words("regexp_extract_all regexp_replace regexp_split_to_array str_split_regex string_split_regex")

// distances are the functions whose time is the product of two lengths.
var distances = words("levenshtein editdist3 damerau_levenshtein jaro_similarity jaro_winkler_similarity")

// maxCompared bounds a text of which a distance is computed.
const maxCompared = 200

// quick refuses a call whose time nobody knows.
func (g *guard) quick(call map[string]any, name string) error {
	args, _ := call["children"].([]any)
	if wildcard, ok := wildcards[name]; ok && len(args) > 1 && !g.quickPattern(name, wildcard, args) {
		return g.denied(call, "this pattern", "its time cannot be bounded: LIKE takes a pattern that is written out or a parameter, and where it has ESCAPE or _ , as ILIKE and GLOB always, "+
			"one wildcard for any text besides that at its end; lower(x) LIKE '%a%b%', contains(x, y) and starts_with(x, y) have no such bounds")
	}
	if searches[name] && len(args) > 1 && !g.quickSearch(name, args) {
		return g.denied(call, "this expression of "+name, "it is looked for again and again, and may take the time of the whole text each time: it has to be written out or a parameter, "+
			"without * and + inside of what is optional, repeated or one of several")
	}
	if !distances[name] {
		return nil
	}
	for _, arg := range args {
		if !g.short(arg) {
			n := strconv.Itoa(maxCompared)
			return g.denied(call, "this call of "+name, "its time is the product of two lengths: cut the texts to "+n+" characters, as in "+name+"(left(a, "+n+"), left(b, "+n+"))")
		}
	}
	return nil
}

func (g *guard) quickPattern(name string, wildcard byte, args []any) bool {
	pattern, known := g.written(args[1])
	if !known {
		return false
	}
	// DuckDB looks for the parts of such a pattern one after the other.
	if (name == "~~" || name == "!~~") && !strings.ContainsAny(pattern, "_\x00") {
		return true
	}
	if len(args) > 2 {
		escape, known := g.written(args[2])
		if !known {
			return false
		}
		pattern = unescaped(pattern, escape)
	}
	return len(pattern) <= maxCount && strings.Count(strings.TrimRight(pattern, string(wildcard)), string(wildcard)) <= 1
}

func (g *guard) quickSearch(name string, args []any) bool {
	if name == "regexp_replace" {
		if len(args) < 4 {
			return true // it is replaced once
		}
		if options, known := g.written(args[3]); known && !strings.Contains(options, "g") {
			return true
		}
	}
	expression, known := g.written(args[1])
	if !known {
		return false
	}
	re, err := syntax.Parse(expression, syntax.Perl)
	return err == nil && !retries(re)
}

// retries says whether an expression may be found in a few characters after
// more of them were looked at in vain: as many as there are, for a repetition
// inside of what need not be there.
func retries(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat, syntax.OpAlternate:
		if slices.ContainsFunc(re.Sub, repeats) {
			return true
		}
	}
	return slices.ContainsFunc(re.Sub, retries)
}

// repeats says whether an expression has a part of any length.
func repeats(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0 || slices.ContainsFunc(re.Sub, repeats)
}

// unescaped leaves out what an escape character takes the meaning from.
func unescaped(pattern, escape string) string {
	if escape == "" {
		return pattern
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(pattern, escape)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('x')
		if pattern = after; pattern != "" {
			pattern = pattern[1:]
		}
	}
}

// written is a text that the query or its arguments give, so that DuckDB knows
// it before it reads the first row.
func (g *guard) written(v any) (whole string, known bool) {
	o, _ := v.(map[string]any)
	args, _ := o["children"].([]any)
	switch text(o, "class") {
	case "CONSTANT":
		if s, ok := literalText(o); ok {
			return s, true
		}
		value, _ := o["value"].(map[string]any)
		return fmt.Sprint(value["value"]), true
	case "PARAMETER":
		return g.argument(text(o, "identifier"))
	case "CAST":
		return g.written(o["child"])
	case "FUNCTION":
		switch sandbox.Fold(text(o, "function_name")) {
		case "||", "concat", "lower", "upper", "lcase", "ucase":
		default:
			return "", false
		}
		for _, arg := range args {
			s, known := g.written(arg)
			if !known {
				return "", false
			}
			whole += s
		}
		return whole, true
	}
	return "", false
}

// argument is the text of an argument. What the guard says then holds for
// this one only.
func (g *guard) argument(name string) (string, bool) {
	g.valued = true
	for i, arg := range g.sandbox.Args {
		given, value := sandbox.Named(arg)
		if given == "" {
			given = strconv.Itoa(i + 1)
		}
		if given == name {
			return fmt.Sprint(value), true
		}
	}
	return "", true // which is refused elsewhere
}

// short says that a text has at most maxCompared characters.
func (g *guard) short(v any) bool {
	if s, known := g.written(v); known {
		return len(s) <= 4*maxCompared
	}
	o, _ := v.(map[string]any)
	args, _ := o["children"].([]any)
	if text(o, "class") != "FUNCTION" || len(args) == 0 {
		return false
	}
	switch name := sandbox.Fold(text(o, "function_name")); name {
	case "lower", "upper", "lcase", "ucase", "trim", "ltrim", "rtrim", "strip_accents", "reverse":
		return g.short(args[0])
	case "left", "substr", "substring":
		n, known := count(args[len(args)-1])
		return known && n >= 0 && n <= maxCompared && (name == "left" || len(args) == 3)
	}
	return false
}

//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxCount bounds the numbers that say how large a result is.
	maxCount = 1000
	// maxGrowth bounds the product of what all functions of a query make of
	// one byte: a value of a row is made in memory before any limit sees it.
	maxGrowth = 10_000
)

// growing are the functions whose result is larger than their arguments by a
// number or a text, with the place of that argument. It has to be written out
// in the query.
var growing = map[string]int{
	"repeat": 1, "lpad": 1, "rpad": 1,
	"range": -1, "generate_series": -1, // all arguments are numbers
	"replace": 2, "regexp_replace": 2,
	"format": 0, "printf": 0,
}

// wide is a format that asks for a width beyond all reason, or takes it from
// an argument.
var wide = regexp.MustCompile(`[0-9]{4}|\*|\{[^}]*\{`)

// sized refuses a call whose result may be of any size.
func (g *guard) sized(call map[string]any, name string) error {
	at, grows := growing[name]
	if !grows {
		return nil
	}
	args, _ := call["children"].([]any)
	if at >= len(args) {
		return nil // DuckDB says what is missing
	}
	factor, ok := 1.0, false
	switch name {
	case "range", "generate_series":
		ok = true
		for _, a := range args {
			n, whole := count(a)
			ok = ok && whole
			factor = max(factor, 2*n)
		}
	case "repeat":
		factor, ok = count(args[at])
	case "lpad", "rpad":
		_, ok = count(args[at])
	case "replace", "regexp_replace":
		var with string
		if with, ok = literalText(args[at]); ok {
			factor = grown(name, args[1], with)
		}
	case "format", "printf":
		var layout string
		layout, ok = literalText(args[at])
		ok = ok && !wide.MatchString(layout)
		factor = float64(1 + strings.Count(layout, "{") + strings.Count(layout, "%"))
	}
	g.growth *= max(factor, 1)
	if !ok || g.growth > maxGrowth {
		return g.denied(call, "this call of "+name, "what makes its result large must be written out and small: numbers up to "+strconv.Itoa(maxCount)+
			", short texts; rows of numbers or days come from range or generate_series in the FROM")
	}
	return nil
}

// grown is how often longer a text may be after a replacement.
func grown(name string, pattern any, with string) float64 {
	found, known := literalText(pattern)
	if name == "replace" && known && found != "" {
		return float64(len(with)) / float64(len(found))
	}
	return float64(len(with)) + 100*float64(strings.Count(with, `\`))
}

// count is a number that is written out and small.
func count(arg any) (float64, bool) {
	o, _ := arg.(map[string]any)
	if text(o, "class") == "FUNCTION" && text(o, "function_name") == "-" {
		if args, _ := o["children"].([]any); len(args) == 1 {
			return count(args[0])
		}
	}
	value, _ := o["value"].(map[string]any)
	n, isNumber := value["value"].(json.Number)
	if text(o, "class") != "CONSTANT" || !isNumber {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil && f <= maxCount && f >= -maxCount
}

func literalText(arg any) (string, bool) {
	o, _ := arg.(map[string]any)
	value, _ := o["value"].(map[string]any)
	s, ok := value["value"].(string)
	return s, ok && text(o, "class") == "CONSTANT"
}

//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
)

// DuckDB makes some thousand values of a column before it looks at a limit, a
// time-out or its memory. So how large one value may become is estimated
// before, in units of what a value of a table is thought to have.
const (
	unit     = 100  // bytes
	maxValue = 2000 // units
	// maxCount bounds the numbers that say how large a result is.
	maxCount = 1000
	// maxDepth bounds the brackets of a structure that JSON is read into: the
	// time for a type of hundreds of levels is that of minutes.
	maxDepth = 32
	// unpacked is how many columns *COLUMNS(*) is thought to give.
	unpacked = 20
)

// growing are the functions whose result is larger than their arguments by a
// number or a text, with the place of that argument. It has to be written out
// in the query.
var growing = map[string]int{
	"repeat": 1, "lpad": 1, "rpad": 1,
	"range": -1, "generate_series": -1, // all arguments are numbers
	"replace": 2, "regexp_replace": 2,
	"format": 0, "printf": 0,
	"from_json": 1, "from_json_strict": 1, "json_transform": 1, "json_transform_strict": 1, // by the depth of the structure
}

// level are the functions whose result is not larger than the largest of
// their arguments.
var level = words("+ - * / % // ** ^ & | << >> ~ @ ! coalesce greatest least")

// reach is what the values that a place of the query sees may have.
type reach struct {
	outer   *reach
	ctes    map[string]float64
	columns float64
	aliases map[string]float64
}

func (r *reach) inner() *reach {
	return &reach{outer: r, ctes: map[string]float64{}, columns: 1, aliases: map[string]float64{}}
}

func (r *reach) cte(name string) float64 {
	for ; r != nil; r = r.outer {
		if size, ok := r.ctes[name]; ok {
			return size
		}
	}
	return 1
}

func (r *reach) column(names []any) (size float64) {
	size = 1
	for ; r != nil; r = r.outer {
		size = max(size, r.columns)
		for _, n := range names {
			name, _ := n.(string)
			size = max(size, r.aliases[sandbox.Fold(name)])
		}
	}
	return size
}

// bounded refuses a query whose values may be of any size. The guard has
// looked at it before.
func (g *guard) bounded(tree map[string]any) error {
	_, err := g.largest(tree, (*reach)(nil).inner())
	return err
}

// largest gives the size of the largest value of a part of the query.
func (g *guard) largest(v any, r *reach) (size float64, err error) {
	size = 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n, err := g.largest(e, r)
			if err != nil {
				return 0, err
			}
			size = max(size, n)
		}
		return size, nil
	case map[string]any:
		return g.largestOf(v, r)
	}
	return size, nil
}

func (g *guard) largestOf(o map[string]any, r *reach) (float64, error) {
	switch text(o, "class") {
	case "CONSTANT":
		s, _ := literalText(o)
		return max(1, float64(len(s))/unit), nil
	case "COLUMN_REF":
		names, _ := o["column_names"].([]any)
		return r.column(names), nil
	case "STAR":
		return unpacked * r.column(nil), nil
	case "FUNCTION":
		return g.made(o, r)
	case "COMPARISON", "BETWEEN", "CONJUNCTION":
		_, err := g.parts(o, r)
		return 1, err
	}
	switch text(o, "type") {
	case "BASE_TABLE":
		if text(o, "schema_name") != "" {
			return 1, nil
		}
		return r.cte(sandbox.Fold(text(o, "table_name"))), nil
	case "TABLE_FUNCTION": // gives rows, not one large value
		call, _ := o["function"].(map[string]any)
		return g.parts(call, r)
	case "SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE":
		return g.selected(o, r.inner())
	}
	return g.parts(o, r)
}

// parts gives the largest value of all parts of a node but the ones named.
func (g *guard) parts(o map[string]any, r *reach, but ...string) (size float64, err error) {
	size = 1
	for key, part := range o {
		if slices.Contains(but, key) {
			continue
		}
		n, err := g.largest(part, r)
		if err != nil {
			return 0, err
		}
		size = max(size, n)
	}
	return size, nil
}

// selected gives the largest value in the rows of a query.
func (g *guard) selected(o map[string]any, r *reach) (float64, error) {
	with, _ := o["cte_map"].(map[string]any)
	entries, _ := with["map"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		size, err := g.largest(entry["value"], r)
		if err != nil {
			return 0, err
		}
		r.ctes[sandbox.Fold(text(entry, "key"))] = size
	}
	if text(o, "type") != "SELECT_NODE" {
		return g.parts(o, r, "cte_map")
	}
	var err error
	if r.columns, err = g.largest(o["from_table"], r); err != nil {
		return 0, err
	}
	size := 1.0
	list, _ := o["select_list"].([]any)
	for _, e := range list {
		n, err := g.largest(e, r)
		if err != nil {
			return 0, err
		}
		if named, ok := e.(map[string]any); ok && text(named, "alias") != "" {
			r.aliases[sandbox.Fold(text(named, "alias"))] = n
		}
		if named, ok := e.(map[string]any); ok && text(named, "class") == "STAR" {
			n /= unpacked // each column is one of its own
		}
		size = max(size, n)
	}
	_, err = g.parts(o, r, "cte_map", "from_table", "select_list")
	return size, err
}

// made gives the size of a function's result.
func (g *guard) made(call map[string]any, r *reach) (float64, error) {
	name := sandbox.Fold(text(call, "function_name"))
	args, _ := call["children"].([]any)
	sum, most, times := 0.0, 1.0, 1.0
	for _, a := range args {
		n, err := g.largest(a, r)
		if err != nil {
			return 0, err
		}
		if o, ok := a.(map[string]any); ok && text(o, "class") == "LAMBDA" {
			times = n // for each element
			continue
		}
		sum, most = sum+n, max(most, n)
	}
	if _, err := g.parts(call, r, "children"); err != nil { // its filter and order
		return 0, err
	}
	if level[name] {
		return most, nil
	}
	factor, ok := factorOf(name, args)
	size := max(sum, 1) * times * max(factor, 1)
	if !ok || size > maxValue {
		return 0, g.denied(call, "this call of "+name, "its result may be too large. What makes it large must be written out and small: numbers up to "+strconv.Itoa(maxCount)+
			", short texts; rows of numbers or days come from range or generate_series in the FROM")
	}
	return size, nil
}

// factorOf is by how much a function's result is larger than its arguments,
// and whether that is known.
func factorOf(name string, args []any) (factor float64, known bool) {
	at, grows := growing[name]
	if !grows || at >= len(args) { // in the second case DuckDB says what is missing
		return 1, true
	}
	switch name {
	case "range", "generate_series":
		known = true
		for _, a := range args {
			n, small := count(a)
			known = known && small
			factor = max(factor, 2*n*8/unit)
		}
	case "repeat":
		factor, known = count(args[at])
	case "lpad", "rpad":
		factor, known = count(args[at])
		factor /= unit
	case "replace", "regexp_replace":
		var with string
		if with, known = literalText(args[at]); known {
			factor = grown(name, args[1], with)
		}
	case "from_json", "from_json_strict", "json_transform", "json_transform_strict":
		var structure string
		structure, known = literalText(args[at])
		known = known && len(structure) <= maxCount && strings.Count(structure, "[")+strings.Count(structure, "{") <= maxDepth
	case "format", "printf":
		var layout string
		layout, known = literalText(args[at])
		known = known && !wide.MatchString(layout)
		factor = float64(strings.Count(layout, "{") + strings.Count(layout, "%"))
	}
	return factor, known
}

// wide is a format that asks for a width beyond all reason, or takes it from
// an argument.
var wide = regexp.MustCompile(`[0-9]{4}|\*|\{[^}]*\{`)

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
	isNull, _ := value["is_null"].(bool)
	return s, (ok || isNull) && text(o, "class") == "CONSTANT"
}

//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	_ "embed"
	"maps"
	"strings"
)

//go:embed functions.txt
var functionsText string

// functions are the decisions of functions.txt. A function without a decision is
// refused.
var functions = readFunctions()

type decisions struct {
	// calls are allowed in an expression, tables in a FROM.
	calls, tables map[string]bool
	// refused has the rule against a function of an expression.
	refused map[string]string
}

func readFunctions() decisions {
	d := decisions{calls: map[string]bool{}, tables: map[string]bool{}, refused: map[string]string{}}
	for section := range strings.SplitSeq(functionsText, "\n= ") {
		heading, text, _ := strings.Cut(section, "\n")
		kind, rule, _ := strings.Cut(heading, ": ")
		kind, _, _ = strings.Cut(kind, " (") // a version
		switch names := words(text); kind {
		case "compute":
			maps.Copy(d.calls, names)
		case "from":
			maps.Copy(d.calls, names) // unnest
			maps.Copy(d.tables, names)
		case "refused":
			for name := range names {
				d.refused[name] = rule
			}
		}
	}
	return d
}

// rule returns the rule against a call of a function.
func (d decisions) rule(name string) string {
	if rule := d.refused[name]; rule != "" {
		return rule
	}
	return "it is none of the functions that are let through"
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

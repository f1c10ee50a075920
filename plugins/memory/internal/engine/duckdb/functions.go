//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	_ "embed"
	"maps"
	"strings"
)

//go:embed functions.txt
var functionsText string

// functions are the decisions in functions.txt. A function without a decision is
// refused.
var functions = readFunctions()

type decisions struct {
	// calls are allowed in expressions, tables in FROM.
	calls, tables map[string]bool
	// refused has the reason why a function is refused in expressions.
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
			maps.Copy(d.calls, names) // unnest may also be called in expressions
			maps.Copy(d.tables, names)
		case "refused":
			for name := range names {
				d.refused[name] = rule
			}
		}
	}
	return d
}

// rule returns the reason why a call of the function is refused.
func (d decisions) rule(name string) string {
	if rule := d.refused[name]; rule != "" {
		return rule
	}
	return "it is not one of the allowed functions"
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

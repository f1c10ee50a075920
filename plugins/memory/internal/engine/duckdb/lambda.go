//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
)

// All elements of a list go through a lambda before DuckDB looks at a
// time-out, and a list may have as many as fit into memory. So for each of them
// nothing may be done that takes as long as something else is large: what comes
// from outside of the lambda goes only into what is steady.

// lambdaCalls are the functions that take a lambda.
var lambdaCalls = words("list_transform list_apply apply array_apply array_transform list_filter filter array_filter")

// steady are the functions whose time does not depend on how large their
// arguments are, or that are bounded by the memory for what they make.
var steady = words(`
	+ - * / // % ** ^ & | << >> ~ ! || add subtract multiply divide mod pow power abs sign ceil ceiling floor round trunc sqrt exp ln log log2 log10 xor
	greatest least nullif isnan isfinite isinf concat struct_pack struct_extract array_extract list_extract list_element element_at
	date_add date_sub date_diff datediff date_part datepart date_trunc datetrunc year month day hour minute second epoch epoch_ms make_date
`)

// lambdas looks at the lambdas of a part of the query. The parameters are
// those of the lambda around it, nil for none.
func (g *guard) lambdas(v any, params map[string]bool) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := g.lambdas(e, params); err != nil {
				return err
			}
		}
	case map[string]any:
		if params != nil && !isSteady(v) && slices.ContainsFunc(arguments(v), func(arg any) bool { return reachesOut(arg, params) }) {
			return g.denied(v, "what is done with a value from outside of the lambda", "it would be done again for each element, and that cannot be interrupted: make the value in a subquery, or unnest the list")
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "children" || !isLambdaCall(v) {
				if err := g.lambdas(v[key], params); err != nil {
					return err
				}
				continue
			}
			if err := g.called(v, params); err != nil {
				return err
			}
		}
	}
	return nil
}

// called looks at the arguments of a call that takes a lambda.
func (g *guard) called(call map[string]any, params map[string]bool) error {
	args, _ := call["children"].([]any)
	for _, arg := range args {
		inside, body := params, arg
		if own := parameters(arg); own != nil {
			for name := range own {
				if g.names[name] {
					return g.denied(call, "the lambda's parameter "+name, "a table has this name, too")
				}
			}
			inside, body = own, arg.(map[string]any)["expr"]
		}
		if err := g.lambdas(body, inside); err != nil {
			return err
		}
	}
	return nil
}

func isLambdaCall(o map[string]any) bool {
	return text(o, "class") == "FUNCTION" && lambdaCalls[sandbox.Fold(text(o, "function_name"))]
}

// parameters are those of a lambda, nil for what is none.
func parameters(v any) map[string]bool {
	o, _ := v.(map[string]any)
	if text(o, "class") != "LAMBDA" {
		return nil
	}
	own := map[string]bool{}
	lhs, _ := o["lhs"].(map[string]any)
	list := []any{lhs}
	if text(lhs, "class") == "FUNCTION" {
		list, _ = lhs["children"].([]any)
	}
	for _, p := range list {
		param, _ := p.(map[string]any)
		for _, name := range texts(param["column_names"]) {
			own[name] = true
		}
	}
	return own
}

func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, e := range list {
		s, _ := e.(string)
		all = append(all, sandbox.Fold(s))
	}
	return all
}

func isSteady(o map[string]any) bool {
	switch text(o, "class") {
	case "FUNCTION":
		return steady[sandbox.Fold(text(o, "function_name"))]
	case "CAST", "LAMBDA": // which is an arrow of JSON here
		return false
	case "OPERATOR":
		return !slices.Contains([]string{"ARRAY_SLICE", "ARROW", "COMPARE_IN", "COMPARE_NOT_IN"}, text(o, "type"))
	}
	return true
}

// arguments are what a call is given, its lambda apart.
func arguments(o map[string]any) (all []any) {
	switch text(o, "class") {
	case "CAST":
		return []any{o["child"]}
	case "LAMBDA":
		return []any{o["lhs"], o["expr"]}
	}
	args, _ := o["children"].([]any)
	for _, arg := range args {
		if !isLambdaCall(o) || parameters(arg) == nil {
			all = append(all, arg)
		}
	}
	return all
}

// reachesOut says whether an expression has a value from outside of the lambda
// with these parameters.
func reachesOut(v any, params map[string]bool) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return reachesOut(e, params) })
	case map[string]any:
		switch text(v, "class") {
		case "COLUMN_REF":
			names := texts(v["column_names"])
			return len(names) == 0 || !params[names[0]]
		case "STAR", "POSITIONAL_REFERENCE":
			return true
		}
		for key, part := range v {
			if key != "children" || !isLambdaCall(v) {
				if reachesOut(part, params) {
					return true
				}
				continue
			}
			args, _ := part.([]any)
			for _, arg := range args {
				own := parameters(arg)
				if own == nil && reachesOut(arg, params) {
					return true
				}
				if own != nil {
					maps.Copy(own, params)
					if reachesOut(arg.(map[string]any)["expr"], own) {
						return true
					}
				}
			}
		}
	}
	return false
}

// named collects the names of the tables in a query.
func named(v any, names map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			named(e, names)
		}
	case map[string]any:
		for _, key := range []string{"alias", "table_name"} {
			if name := text(v, key); name != "" && text(v, "class") == "" {
				names[sandbox.Fold(name)] = true
			}
		}
		for _, part := range v {
			named(part, names)
		}
	}
}

//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// guard walks over the tree of a statement and refuses everything that nodes.go
// and functions.go do not allow. It checks every node, wherever it is.
type guard struct {
	query         string
	sandbox       store.Sandbox
	tables, views map[string]bool
	// used are the query's parameters.
	used map[string]bool
}

const (
	// maxSize bounds the size of a statement, in expressions, after each alias,
	// each name of a WITH and each star is replaced by its definition. DuckDB
	// replaces them while it plans the statement, which cannot be interrupted.
	maxSize = 50_000
	// Joins and the columns of a star take longer to plan than other
	// expressions. A table is assumed to have tableColumns.
	tableSize    = 1000
	tableColumns = 20
	columnSize   = 10
)

// scope has the names that are visible at a place of the query.
type scope struct {
	outer   *scope
	ctes    map[string]relation
	aliases map[string]int // name -> size
	columns int            // the columns of the FROM that were read so far
	starred int            // columns that stars in the select list add
}

// relation is the size of the query behind a name of a WITH.
type relation struct{ size, columns int }

func (s *scope) inner() *scope {
	return &scope{outer: s, ctes: map[string]relation{}, aliases: map[string]int{}}
}

// cte returns the relation of a name of a WITH.
func (s *scope) cte(name string) (relation, bool) {
	for ; s != nil; s = s.outer {
		if r, ok := s.ctes[name]; ok {
			return r, true
		}
	}
	return relation{}, false
}

func (s *scope) alias(name string) (size int) {
	for ; s != nil; s = s.outer {
		size = max(size, s.aliases[name])
	}
	return size
}

func newGuard(query string, bounds store.Sandbox) *guard {
	g := &guard{query: query, sandbox: bounds, tables: map[string]bool{}, views: map[string]bool{}, used: map[string]bool{}}
	for _, t := range bounds.Tables {
		g.tables[sandbox.Fold(t)] = true
	}
	for _, v := range bounds.Views {
		g.views[sandbox.Fold(v.Name)] = true
	}
	return g
}

// check checks the tree of one SELECT.
func (g *guard) check(tree map[string]any) error {
	if _, err := g.walk(tree, (*scope)(nil).inner()); err != nil {
		return err
	}
	return sandbox.Arguments(g.sandbox, g.used)
}

func (g *guard) denied(node map[string]any, what, rule string) error {
	return sandbox.Denied(g.sandbox, g.query, offset(node), what, rule)
}

// offset returns the place of a node in the query, -1 if unknown.
func offset(node map[string]any) int {
	if at, ok := node["query_location"].(json.Number); ok {
		if n, err := strconv.Atoi(string(at)); err == nil {
			return n
		}
	}
	return -1
}

// walk checks a part of the tree and returns its size.
func (g *guard) walk(v any, s *scope) (size int, err error) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n, err := g.walk(e, s)
			if size += n; err != nil {
				return size, err
			}
		}
	case map[string]any:
		return g.node(v, s)
	}
	return size, nil
}

func (g *guard) node(o map[string]any, s *scope) (int, error) {
	class, kind := text(o, "class"), text(o, "type")
	switch {
	case class != "":
		if !expressions[class][kind] {
			return 0, g.denied(o, "a "+class+" expression ("+kind+")", "it is not one of the allowed expressions")
		}
		return g.expression(o, class, s)
	case kind == "SELECT_NODE":
		return g.selectNode(o, s.inner())
	case kind == "SET_OPERATION_NODE", kind == "CTE_NODE":
		return g.withCTEs(o, s.inner())
	case kind == "RECURSIVE_CTE_NODE":
		return g.recursive(o, s.inner())
	case kind == "BASE_TABLE":
		return g.baseTable(o, s)
	case kind == "TABLE_FUNCTION":
		return g.tableFunction(o, s)
	case kind == "PIVOT":
		return g.pivot(o, s)
	case kind == "UNBOUND_TYPE_INFO":
		// DuckDB looks up types that are not built in in its catalog.
		if sandbox.Fold(text(o, "name")) != "json" || text(o, "schema") != "" || text(o, "catalog") != "" {
			return 0, g.denied(o, "the type "+text(o, "name"), "only the built-in types and json are allowed")
		}
	case kind != "" && !plain[kind]:
		return 0, g.denied(o, "a "+kind, "it is not part of a plain SELECT")
	}
	return g.fields(o, s)
}

// fields walks over all parts of a node except the named ones.
func (g *guard) fields(o map[string]any, s *scope, but ...string) (size int, err error) {
	size = 1
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(but, key) || isEmpty(o[key]) {
			continue
		}
		if !parts[key] {
			return size, g.denied(o, "the part "+strconv.Quote(key)+" of a query", "it is not known to be safe")
		}
		n, err := g.walk(o[key], s)
		if size += n; err != nil {
			return size, err
		}
		if size > maxSize {
			return size, errTooLarge()
		}
	}
	return size, nil
}

func errTooLarge() error {
	return tea.Errorf(tea.ValidationError, "SQL: the query is too large: more than %d expressions after its aliases, stars and the names of its WITH are replaced, each table counted as %d; simplify it", maxSize, tableSize)
}

// isEmpty reports whether a field has no value: an unknown field without a value
// has no effect.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}

func text(o map[string]any, key string) string {
	s, _ := o[key].(string)
	return s
}

// selectNode checks a SELECT in the order in which its parts see each other.
func (g *guard) selectNode(o map[string]any, s *scope) (int, error) {
	size, err := g.ctes(o, s)
	if err != nil {
		return size, err
	}
	n, err := g.walk(o["from_table"], s)
	if size += n; err != nil {
		return size, err
	}
	list, _ := o["select_list"].([]any)
	for _, e := range list {
		n, err := g.walk(e, s)
		if size += n; err != nil {
			return size, err
		}
		if n > maxSize {
			return size, errTooLarge()
		}
		if named, ok := e.(map[string]any); ok && text(named, "alias") != "" {
			s.aliases[sandbox.Fold(text(named, "alias"))] = n
		}
	}
	s.outer.columns += len(list) + s.starred
	n, err = g.fields(o, s, "cte_map", "from_table", "select_list")
	return size + n, err
}

func (g *guard) withCTEs(o map[string]any, s *scope) (int, error) {
	size, err := g.ctes(o, s)
	if err != nil {
		return size, err
	}
	n, err := g.fields(o, s, "cte_map")
	s.outer.columns += s.columns
	return size + n, err
}

// recursive checks a recursive query: only its right side sees its name.
func (g *guard) recursive(o map[string]any, s *scope) (int, error) {
	size, err := g.ctes(o, s)
	if err != nil {
		return size, err
	}
	n, err := g.walk(o["left"], s)
	if size += n; err != nil {
		return size, err
	}
	right := s.inner()
	right.ctes[sandbox.Fold(text(o, "cte_name"))] = relation{tableSize, tableColumns}
	if n, err = g.walk(o["right"], right); err != nil {
		return size + n, err
	}
	size += n
	s.outer.columns += s.columns
	n, err = g.fields(o, s, "cte_map", "left", "right")
	return size + n, err
}

// ctes checks the WITH of a node. A name is visible to everything after it.
func (g *guard) ctes(o map[string]any, s *scope) (size int, err error) {
	with, _ := o["cte_map"].(map[string]any)
	entries, _ := with["map"].([]any)
	if len(with) > 1 || (len(with) == 1 && with["map"] == nil) {
		return 0, g.denied(o, "a WITH", "its form is not known")
	}
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		value, _ := entry["value"].(map[string]any)
		if value == nil || len(entry) != 2 {
			return size, g.denied(o, "a WITH", "its form is not known")
		}
		switch text(value, "materialized") {
		case "CTE_MATERIALIZE_DEFAULT", "CTE_MATERIALIZE_ALWAYS", "":
		default:
			return size, g.denied(o, "NOT MATERIALIZED", "each use of such a query would be a copy of it")
		}
		inner := s.inner()
		n, err := g.fields(value, inner)
		if size += n; err != nil {
			return size, err
		}
		if n > maxSize {
			return size, errTooLarge()
		}
		s.ctes[sandbox.Fold(text(entry, "key"))] = relation{n, inner.columns}
	}
	return size, nil
}

func (g *guard) baseTable(o map[string]any, s *scope) (int, error) {
	name, schema, catalog := text(o, "table_name"), text(o, "schema_name"), text(o, "catalog_name")
	folded := sandbox.Fold(name)
	r, isCTE := s.cte(folded)
	if !isCTE {
		r = relation{tableSize, tableColumns}
	}
	switch {
	case catalog == "" && schema == "" && (isCTE || g.views[folded] || g.tables[folded]):
	case catalog == "" && sandbox.Fold(schema) == "main" && g.tables[folded]:
	case catalog == "" && g.sandbox.Broken[folded] != nil:
		return 0, g.sandbox.Broken[folded]
	default:
		for _, qualifier := range []string{schema, catalog} {
			if qualifier != "" {
				name = qualifier + "." + name
			}
		}
		return 0, g.denied(o, "the table "+name, "only the listed tables are open to queries")
	}
	s.columns += r.columns
	n, err := g.fields(o, s)
	return n + r.size, err
}

func (g *guard) tableFunction(o map[string]any, s *scope) (int, error) {
	call, _ := o["function"].(map[string]any)
	if text(call, "class") != "FUNCTION" || !functions.tables[sandbox.Fold(text(call, "function_name"))] || !builtIn(call) {
		return 0, g.denied(o, "the table function "+text(call, "function_name"), "only "+strings.Join(slices.Sorted(maps.Keys(functions.tables)), ", ")+" are allowed in FROM")
	}
	s.columns += tableColumns
	size, err := g.fields(call, s)
	if err != nil {
		return size, err
	}
	n, err := g.fields(o, s, "function")
	return size + n, err
}

// pivot checks a PIVOT or UNPIVOT. A PIVOT has a column for each combination of
// its values and each aggregate.
func (g *guard) pivot(o map[string]any, s *scope) (int, error) {
	size, err := g.walk(o["source"], s)
	if err != nil {
		return size, err
	}
	aggregates, _ := o["aggregates"].([]any)
	columns := max(1, len(aggregates))
	pivots, _ := o["pivots"].([]any)
	for _, p := range pivots {
		pivot, _ := p.(map[string]any)
		entries, _ := pivot["entries"].([]any)
		columns = min(columns*(len(entries)+1), math.MaxInt32)
	}
	s.columns += columns
	n, err := g.fields(o, &scope{outer: s, columns: s.columns}, "source")
	return size + n + min(columns*columnSize, math.MaxInt32), err
}

// builtIn reports whether a call does not name another schema: the parser writes
// "main" for functions that it adds.
func builtIn(o map[string]any) bool {
	return text(o, "catalog") == "" && (text(o, "schema") == "" || sandbox.Fold(text(o, "schema")) == "main")
}

func (g *guard) expression(o map[string]any, class string, s *scope) (int, error) {
	extra := 0
	switch class {
	case "FUNCTION", "WINDOW":
		name := sandbox.Fold(text(o, "function_name"))
		if !functions.calls[name] || !builtIn(o) {
			return 0, g.denied(o, "the function "+text(o, "function_name"), functions.rule(name))
		}
	case "COLUMN_REF":
		names, _ := o["column_names"].([]any)
		if len(names) == 1 && implied[names[0]] {
			return 0, g.denied(o, fmt.Sprintf("the function %s", names[0]), functions.rule(names[0].(string)))
		}
		for _, n := range names {
			name, _ := n.(string)
			extra = min(extra+s.alias(sandbox.Fold(name)), math.MaxInt32)
		}
	case "CONSTANT":
		if isOutOfRange(o) {
			return 0, sandbox.Invalid(g.query, offset(o), "the number is out of range: a DOUBLE is at most 1.8e308")
		}
	case "STAR":
		s.starred += s.columns
		extra = min(s.columns*columnSize, math.MaxInt32)
	case "TYPE": // of DuckDB 2.0, in place of UNBOUND_TYPE_INFO
		if text(o, "schema") != "" || text(o, "catalog") != "" {
			return 0, g.denied(o, "the type "+text(o, "type_name"), "only the built-in types and json are allowed")
		}
	case "PARAMETER":
		g.used[text(o, "identifier")] = true
	case "COLLATE":
		if !collations[sandbox.Fold(text(o, "collation"))] {
			return 0, g.denied(o, fmt.Sprintf("the collation %s", text(o, "collation")), "only nocase, noaccent, nfc and binary are allowed")
		}
	}
	n, err := g.fields(o, s)
	return n + extra, err
}

// isOutOfRange reports whether a constant is a number that DuckDB reads as infinity.
// The tree of DuckDB 1.5 has the value, which finite replaces by null; the tree of 2.0 has
// the text.
func isOutOfRange(o map[string]any) bool {
	if literal, ok := o["literal"].(map[string]any); ok {
		_, err := strconv.ParseFloat(text(literal, "text"), 64)
		return text(literal, "kind") == "NUMERIC" && errors.Is(err, strconv.ErrRange)
	}
	constant, _ := o["value"].(map[string]any)
	isNull, known := constant["is_null"].(bool)
	return known && !isNull && constant["value"] == nil
}

// implied are names that DuckDB treats as functions if there is no such column.
var implied = map[any]bool{"current_catalog": true, "current_role": true, "current_schema": true, "current_user": true, "session_user": true}

var collations = words("nocase noaccent nfc binary nocase.noaccent noaccent.nocase")
